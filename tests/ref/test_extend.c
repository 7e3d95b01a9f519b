/* Generation: tokens that are added to a sequence give the same bits as a pass over all of it. */
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../../ref/base/random.h"
#include "../../ref/blocks/models.h"
#include "../../ref/memory.h"
#include "../../ref/stage.h"
#include "../test.h"
#include "tiny.h"

/* More tokens than a tile of the attention has; the blocks are those of every family of
 * transformers. */
static const struct {
    const char *spec;
    bool plain;
} rows[] = {
    {"gpt:layers=2,width=16,heads=2,context=150,vocabulary=37", false},
    {"gpt:layers=2,width=16,heads=2,context=150,vocabulary=37", true},
    {"llama:layers=2,width=24,heads=4,groups=2,context=150,vocabulary=37", false},
    {"llama:layers=2,width=24,heads=4,groups=2,context=150,vocabulary=37,tied=1", true},
    {"mistral:layers=2,width=24,heads=4,groups=2,context=150,vocabulary=37,window=70", false},
    {"qwen3:layers=2,width=24,heads=4,groups=2,context=150,vocabulary=37", true},
    {"smollm3:layers=2,width=24,heads=4,groups=2,context=150,vocabulary=37,rope_skip=2", false},
    {"olmo2:layers=2,width=24,heads=4,groups=2,context=150,vocabulary=37", false},
    {"llama:layers=1,width=16,heads=2,head_size=10,context=150,vocabulary=37,rope_factor=8,"
     "rope_low=1,rope_high=4,rope_original=64",
     false},
};

/* A generation continues with `count` tokens from `first` on. It starts again in the middle, as
 * with another prompt. */
static const struct {
    int first, count;
} pieces[] = {{0, 5},  {5, 1},   {6, 1},   {7, 57},  {64, 1},   {65, 70}, {135, 15},
              {0, 64}, {64, 64}, {128, 1}, {100, 9}, {109, 41}, {149, 1}};

/* Checks that the stage took what is planned of an evaluation, and of what generation keeps. */
static void check_memory(const Stage *stage) {
    const Model *m = stage->model;
    size_t planned[MEM_ROLES];
    bool *none = calloc((size_t)m->blocks, sizeof *none);
    if (CHECK(memory_plan(planned, m, &stage->settings, none) == 0, "%s", error_message())) {
        planned[MEM_CACHE] += memory_extend(m, &stage->settings);
        for (int role = 0; role < MEM_ROLES; role++)
            CHECK(stage->memory.peak[role] == planned[role], "%s: %zu bytes, planned %zu",
                  mem_role_names[role], stage->memory.peak[role], planned[role]);
    }
    free(none);
}

static void same_bits_as_the_whole(const void *row) {
    const size_t r = (size_t)((const char *)row - (const char *)rows) / sizeof *rows;
    Model *m = model_create(rows[r].spec);
    Stage *stage =
        m ? stage_ref_create(m, (StageSettings){.batch = 1, .plain = rows[r].plain, .seed = 3})
          : NULL;
    if (!CHECK(stage, "%s", error_message())) return;
    const size_t v = (size_t)m->outputs, t = (size_t)m->targets;
    real *whole = malloc(t * v * sizeof *whole), *next = malloc(v * sizeof *next);
    int *tokens = malloc(t * sizeof *tokens);
    for (size_t i = 0; i < t; i++) tokens[i] = (int)random_below(5, STREAM_SAMPLE, i, 37);
    tiny_read_whole(whole, stage, tokens, t);
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
        const int first = pieces[p].first, count = pieces[p].count;
        memset(next, 0xff, v * sizeof *next);
        CHECK(stage_extend(stage, first, tokens + first, count, next) == 0, "%s", error_message());
        CHECK(!memcmp(next, whole + (size_t)(first + count - 1) * v, v * sizeof *next),
              "tokens %d to %d: %g, not %g", first, first + count - 1, (double)next[0],
              (double)whole[(size_t)(first + count - 1) * v]);
    }
    /* With another token in the middle it is another sequence. */
    const int other = (tokens[100] + 1) % 37;
    CHECK(stage_extend(stage, 100, &other, 1, next) == 0, "%s", error_message());
    CHECK(memcmp(next, whole + 100 * v, v * sizeof *next), "the token does not matter");
    CHECK(stage_extend(stage, 149, tokens, 2, next) == -1 &&
              strstr(error_message(), "151 tokens are more than the 150 of "),
          "%s", error_message());
    check_memory(stage);
    stage_free(stage);
    free(whole);
    free(next);
    free(tokens);
    model_free(m);
}

static void images_have_no_tokens(void) {
    Model *m = model_create("resnet:depth=8,width=2");
    Stage *stage = stage_ref_create(m, (StageSettings){.batch = 1});
    real logits[10];
    if (!CHECK(stage, "%s", error_message())) return;
    CHECK(stage_extend(stage, 0, (int[]){1}, 1, logits) == -1 &&
              strstr(error_message(), "reads images, not tokens"),
          "%s", error_message());
    stage_free(stage);
    model_free(m);
}

void test_extend(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        RUN_ROW(rows[i].spec, same_bits_as_the_whole, &rows[i]);
    RUN(images_have_no_tokens);
}
