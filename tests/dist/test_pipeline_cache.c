/* The prefix cache of a pipeline: the same bits as without it, with fewer messages. */
#include <string.h>

#include "../../ref/base/error.h"
#include "../test.h"
#include "pipeline.h"

typedef struct {
    const char *name, *spec;
    int replicas, ranks;
    PlacementKind placement;
    int submodels, micro_batches;
    ScheduleKind kind;
    int batch;       /* 4 */
    double fraction; /* of 12 samples; 1 */
    bool recompute;
    size_t bytes; /* 1 MB */
    const char *dir;
} Row;

static const Row rows[] = {
    {"1 rank", LLAMA, 1, 1, PLACEMENT_PLAIN, 1, .micro_batches = 2},
    {"2 ranks", LLAMA, 1, 2, PLACEMENT_PLAIN, 1, .micro_batches = 2},
    {"3 ranks", LLAMA, 1, 3, PLACEMENT_PLAIN, 1, .micro_batches = 4},
    {"4 ranks, recompute", LLAMA, 1, 4, PLACEMENT_PLAIN, 1, .micro_batches = 1, .recompute = true},
    {"2 ranks, virtual stages", LLAMA, 1, 2, PLACEMENT_VIRTUAL, 3, .micro_batches = 2},
    {"2 ranks, virtual stages, zero bubble", LLAMA, 1, 2, PLACEMENT_VIRTUAL, 3, .micro_batches = 4,
     .kind = SCHEDULE_ZERO_BUBBLE},
    {"3 ranks, figure 2", LLAMA, 1, 3, PLACEMENT_FIGURE2, 2, .micro_batches = 2},
    {"resnet, 3 ranks", RESNET, 1, 3, PLACEMENT_PLAIN, 1, .micro_batches = 2},
    {"resnet, 2 ranks, virtual stages", RESNET, 1, 2, PLACEMENT_VIRTUAL, 3, .micro_batches = 2},
    {"2 ranks, nothing fits", LLAMA, 1, 2, PLACEMENT_PLAIN, 1, .micro_batches = 2, .bytes = 1},
    {"2 ranks, all in a file", LLAMA, 1, 2, PLACEMENT_PLAIN, 1, .micro_batches = 2, .bytes = 1,
     .dir = "/tmp"},
    {"2 ranks, part of the data", LLAMA, 1, 2, PLACEMENT_PLAIN, 1, .micro_batches = 2,
     .fraction = 0.5},
    {"2 ranks, a batch of 5", LLAMA, 1, 2, PLACEMENT_PLAIN, 1, .micro_batches = 2, .batch = 5},
    {"2 replicas of 1 rank", LLAMA, 2, 1, PLACEMENT_PLAIN, 1, .micro_batches = 1},
    {"2 replicas of 2 ranks", LLAMA, 2, 2, PLACEMENT_PLAIN, 1, .micro_batches = 2},
    {"2 replicas of 2 ranks, virtual stages", LLAMA, 2, 2, PLACEMENT_VIRTUAL, 3,
     .micro_batches = 2},
    {"2 replicas of 2 ranks, a batch of 5", LLAMA, 2, 2, PLACEMENT_PLAIN, 1, .micro_batches = 2,
     .batch = 5},
    {"3 replicas of 2 ranks, an empty share", LLAMA, 3, 2, PLACEMENT_PLAIN, 1, .micro_batches = 1},
    {"2 replicas of 2 ranks, all in a file", LLAMA, 2, 2, PLACEMENT_PLAIN, 1, .micro_batches = 2,
     .bytes = 1, .dir = "/tmp"},
    {"resnet, 2 replicas of 2 ranks", RESNET, 2, 2, PLACEMENT_PLAIN, 1, .micro_batches = 1},
};

/* Two cycles of three submodels, five steps each.  An epoch has three steps, so the last two steps
 * of a phase read from the cache. */
static Recipe recipe_of(const Row *row, bool cached) {
    return (Recipe){.spec = row->spec,
                    .submodels = row->placement == PLACEMENT_FIGURE2 ? 2 : 3,
                    .steps = 30,
                    .rule = {.every = 5},
                    .batch = row->batch ? row->batch : 4,
                    .fraction = row->fraction,
                    .recompute = row->recompute,
                    .micro_batches = row->micro_batches,
                    .cache_bytes = !cached      ? 0
                                   : row->bytes ? row->bytes
                                                : 1 << 20,
                    .cache_dir = row->dir};
}

static PipelineRecipe pipeline_of(const Row *row) {
    return (PipelineRecipe){.placement = row->placement,
                            .ranks = row->ranks,
                            .submodels = row->submodels,
                            .replicas = row->replicas,
                            .settings = {.micro_batches = row->micro_batches, .kind = row->kind}};
}

static int values_sent(const Pipeline *p) {
    int sent = 0;
    engine_memory(p->tiny.engine); /* waits for all ranks */
    for (int r = 0; r < PIPELINE_MAX_RANKS; r++) sent += p->sent[r].values;
    return sent;
}

static void cached_is_exact(const void *data) {
    const Row *row = data;
    PipelineRecipe how = pipeline_of(row);
    Pipeline plain, cached;
    TinyCurve a = {0}, b = {0};
    Recipe without = recipe_of(row, false), with = recipe_of(row, true);
    pipeline_open(&plain, &without, &how);
    pipeline_open(&cached, &with, &how);
    if (!CHECK(plain.tiny.engine && cached.tiny.engine, "%s", error_message())) return;
    CHECK(tiny_train(&plain.tiny, tiny_note_loss, &a) == 0, "%s", error_message());
    CHECK(tiny_train(&cached.tiny, tiny_note_loss, &b) == 0, "%s", error_message());
    CHECK(a.steps == 30 && memcmp(&a, &b, sizeof a) == 0, "losses differ");
    tiny_check_same(&plain.tiny, &cached.tiny, row->name);
    bool helps = row->ranks > 1 && (row->bytes != 1 || row->dir);
    int before = values_sent(&plain), after = values_sent(&cached);
    CHECK(helps ? after < before : after == before, "%d values sent, %d without cache", after,
          before);
    pipeline_close(&plain);
    pipeline_close(&cached);
}

/* ---- the prefix does not run again ---- */

static int sent_by_step(Pipeline *p, Batch *batch) {
    int before = values_sent(p);
    Loss loss;
    CHECK(engine_step(p->tiny.engine, batch, 0.05, &loss) == 0, "%s", error_message());
    return values_sent(p) - before;
}

/* In the second step with the same samples no values are sent to the lowest active block, even
 * where another replica has computed them.  A sample that is new to a replica makes it run its
 * prefix. */
static void nothing_runs_below(void) {
    Recipe recipe = {.spec = LLAMA, .cache_bytes = 1 << 20, .micro_batches = 4};
    PipelineRecipe how = pipeline_plain(3, 2);
    how.replicas = 2;
    Pipeline p;
    pipeline_open(&p, &recipe, &how);
    Batch batch = tiny_batch(&p.tiny, 4), all = tiny_batch(&p.tiny, 12);
    tiny_activate(&p.tiny, 2);
    int every = how.replicas * 2 * how.settings.micro_batches; /* two boundaries */
    CHECK(sent_by_step(&p, &batch) == every, "the first step sends all");
    CHECK(sent_by_step(&p, &batch) == 0, "values were sent to blocks that have them");
    for (int i = 0; i < 2; i++) { /* exchange the samples of the two replicas */
        int *targets = batch.targets, *tokens = batch.tokens, width = p.tiny.model->targets;
        batch.ids[i] = i + 2;
        batch.ids[i + 2] = i;
        for (int k = i * width; k < (i + 1) * width; k++) {
            int other = k + 2 * width, target = targets[k], token = tokens[k];
            targets[k] = targets[other];
            tokens[k] = tokens[other];
            targets[other] = target;
            tokens[other] = token;
        }
    }
    CHECK(sent_by_step(&p, &batch) == 0, "a replica does not know the others' outputs");
    Batch some = batch_slice(&all, p.tiny.model, 2, 6); /* 4 and 5 are new, to the second replica */
    CHECK(sent_by_step(&p, &some) == every / 2, "one replica runs its prefix");
    CHECK(sent_by_step(&p, &some) == 0, "both have it now");
    tiny_activate(&p.tiny, 1);
    CHECK(sent_by_step(&p, &some) == every, "another prefix");
    batch_free(&batch);
    batch_free(&all);
    pipeline_close(&p);
}

/* Only the rank of the lowest active block has memory of the cache, and for a batch of it, which
 * its stage counts. */
static void memory_is_where_the_cache_is(void) {
    Recipe recipe = {.spec = LLAMA, .cache_bytes = 1 << 20, .micro_batches = 2};
    PipelineRecipe how = pipeline_plain(3, 2);
    Pipeline p;
    pipeline_open(&p, &recipe, &how);
    const Model *m = p.tiny.model;
    Batch batch = tiny_batch(&p.tiny, 4);
    for (int submodel = 0; submodel < 3; submodel++) {
        tiny_activate(&p.tiny, submodel);
        sent_by_step(&p, &batch);
        int lowest = 0;
        while (p.tiny.settings.partition.of_block[lowest] != submodel) lowest++;
        int holder = p.placement.rank_of[p.placement.chunk_of[lowest]];
        size_t bytes = (size_t)(p.tiny.data->samples + 4) *
                       shape_count(m->value[m->block[lowest].in].shape) * sizeof(real);
        for (int r = 0; r < 3; r++) {
            size_t kept = p.stage[r]->memory.current[MEM_CACHE];
            CHECK(kept == (lowest > 0 && r == holder ? bytes : 0),
                  "submodel %d: %zu bytes of cache on rank %d", submodel + 1, kept, r);
        }
    }
    batch_free(&batch);
    pipeline_close(&p);
}

static void inexact_is_refused(void) {
    Recipe recipe = {.spec = RESNET, .cache_bytes = 1 << 20, .frozen_norm = FROZEN_BATCH};
    PipelineRecipe how = pipeline_plain(2, 1);
    Pipeline p;
    pipeline_open(&p, &recipe, &how);
    CHECK(!p.tiny.engine && strstr(error_message(), "frozen batch norms that use batch statistics"),
          "\"%s\"", error_message());
    pipeline_close(&p);
}

void test_pipeline_cache(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        RUN_ROW(rows[i].name, cached_is_exact, &rows[i]);
    RUN(nothing_runs_below);
    RUN(memory_is_where_the_cache_is);
    RUN(inexact_is_refused);
}
