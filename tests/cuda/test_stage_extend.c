/* Generation on the device: tokens that are added to a sequence give the logits of a pass over all
 * of it.  They differ by rounding, because few queries and few rows take other kernels. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../cuda/stage/stage_cuda.h"
#include "../../ref/base/random.h"
#include "../../ref/blocks/models.h"
#include "../../ref/memory.h"
#include "../test.h"
#include "device_case.h"
#include "drift.h"

enum { CONTEXT = 70, VOCABULARY = 37 };

#define SIZE "layers=2,width=16,heads=4,context=70,vocabulary=37"

static const char *const specs[] = {
    "gpt:" SIZE,
    "llama:" SIZE ",groups=2,tied=1",
    "mistral:" SIZE ",groups=1,window=20",
    "qwen3:" SIZE ",groups=2",
    "olmo2:" SIZE,
    "llama:layers=1,width=16,heads=2,head_size=10,context=70,vocabulary=37,rope_factor=8,"
    "rope_low=1,rope_high=4,rope_original=32",
};

/* A sequence grows by `count` tokens from `first` on; it starts again in the middle, as with
 * another prompt. */
static const struct {
    int first, count;
} pieces[] = {{0, 5}, {5, 1}, {6, 1}, {7, 40}, {47, 23}, {0, 70}, {30, 2}, {32, 1}, {69, 1}};

/* Returns the largest difference of two rows of logits, over the largest of `like`. */
static double distance(const real *logits, const real *like) {
    double difference = 0, largest = 0;
    for (int i = 0; i < VOCABULARY; i++) {
        difference = worse(difference, fabs((double)logits[i] - (double)like[i]));
        largest = fmax(largest, fabs((double)like[i]));
    }
    return difference / largest;
}

/* Each of some ten roundings in a row of the network may be off by its unit. */
static double allowed(Precision precision) { return 10 * unit_roundoff(precision); }

static void extends(Stage *stage, const int *tokens, const real *whole, double tolerance) {
    real next[VOCABULARY], again[VOCABULARY];
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
        const int first = pieces[p].first, count = pieces[p].count;
        const real *like = whole + (first + count - 1) * VOCABULARY;
        CHECK(stage_extend(stage, first, tokens + first, count, next) == 0, "%s", error_message());
        CHECK(distance(next, like) <= tolerance, "tokens %d to %d: off by %g, allowed %g", first,
              first + count - 1, distance(next, like), tolerance);
        CHECK(stage_extend(stage, first, tokens + first, count, again) == 0, "%s", error_message());
        CHECK(memcmp(next, again, sizeof next) == 0, "other bits the second time");
    }
    /* With another token in the middle it is another sequence. */
    const int other = (tokens[50] + 1) % VOCABULARY;
    CHECK(stage_extend(stage, 50, &other, 1, next) == 0, "%s", error_message());
    CHECK(distance(next, whole + 50 * VOCABULARY) > 10 * tolerance, "the token does not matter");
    CHECK(stage_extend(stage, 69, tokens, 2, next) == -1 &&
              strstr(error_message(), "71 tokens are more than the 70 of "),
          "%s", error_message());
}

static void logits_are_those_of_the_whole(const void *spec) {
    Model *m = model_create(spec);
    int tokens[CONTEXT];
    real *whole = malloc(CONTEXT * VOCABULARY * sizeof *whole);
    for (size_t i = 0; i < CONTEXT; i++) tokens[i] = (int)random_below(5, STREAM_SAMPLE, i, 37);
    for (Precision precision = PRECISION_FP32; m && precision < PRECISIONS; precision++) {
        Stage *stage =
            stage_cuda_create(m, (StageSettings){.batch = 1, .precision = precision, .seed = 3});
        if (!CHECK(stage, "%s", error_message())) continue;
        tiny_read_whole(whole, stage, tokens, CONTEXT);
        extends(stage, tokens, whole, allowed(precision));
        stage_free(stage);
    }
    free(whole);
    model_free(m);
}

/* Keys and values are kept under a role of their own: of every position, a row of q, k and v for
 * each of two layers. */
static void counts_what_it_keeps(const void *spec) {
    Model *m = model_create(spec);
    Stage *stage =
        m ? stage_cuda_create(m, (StageSettings){.batch = 1, .precision = PRECISION_BF16}) : NULL;
    real logits[VOCABULARY];
    if (!CHECK(stage, "%s", error_message())) return;
    for (int i = 0; i < 2; i++)
        CHECK(stage_extend(stage, i, (int[]){1}, 1, logits) == 0, "%s", error_message());
    CHECK(stage->memory.current[MEM_CACHE] == 2 * CONTEXT * 3 * 16 * 2, "%zu bytes are kept",
          stage->memory.current[MEM_CACHE]);
    CHECK(stage->memory.peak[MEM_CACHE] == memory_extend(m, &stage->settings), "planned %zu",
          memory_extend(m, &stage->settings));
    stage_free(stage);
    model_free(m);
}

void test_stage_extend(void) {
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        RUN_ROW(specs[i], logits_are_those_of_the_whole, specs[i]);
    RUN_ROW("memory", counts_what_it_keeps, specs[0]);
}
