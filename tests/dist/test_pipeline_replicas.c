/* Replicas of a pipeline, which divide each batch: the training of one stage up to the order in
 * which gradients are added, with the same bits on every replica. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../test.h"
#include "pipeline.h"

/* A model with more parameters than one all-reduce takes at once. */
#define WIDE "llama:layers=2,width=128,heads=2,ffn=256,context=3,vocabulary=11"

/* A model with a parameter that is larger than what small ones share in an all-reduce. */
#define LARGE "llama:layers=1,width=256,heads=2,ffn=520,context=2,vocabulary=11"

typedef struct {
    const char *name, *spec;
    int replicas, ranks;
    PlacementKind placement;
    int submodels, micro_batches; /* of the placement; of each replica */
    int batch, trained;
    double clip;
} Row;

static const Row rows[] = {
    {"2 replicas of 1 rank, full update", LLAMA, 2, 1, PLACEMENT_PLAIN, 1, 1, 4, .trained = 1},
    {"2 replicas of 2 ranks, full update", LLAMA, 2, 2, PLACEMENT_PLAIN, 1, 2, 4, .trained = 1},
    {"2 replicas of 2 ranks", LLAMA, 2, 2, PLACEMENT_PLAIN, 1, 2, 4, .trained = 3},
    {"2 replicas of 2 ranks, virtual stages", LLAMA, 2, 2, PLACEMENT_VIRTUAL, 3, 2, 4,
     .trained = 3},
    {"2 replicas of 2 ranks, clipped", LLAMA, 2, 2, PLACEMENT_PLAIN, 1, 1, 4, .trained = 3,
     .clip = 0.05},
    {"2 replicas of 2 ranks, a smaller share", LLAMA, 2, 2, PLACEMENT_PLAIN, 1, 2, 5, .trained = 3},
    {"3 replicas of 2 ranks, an empty share", LLAMA, 3, 2, PLACEMENT_PLAIN, 1, 1, 4, .trained = 3},
    {"4 replicas of 1 rank, a sample each", LLAMA, 4, 1, PLACEMENT_PLAIN, 1, 1, 4, .trained = 2},
    {"2 replicas of 2 ranks, tied embedding", GPT, 2, 2, PLACEMENT_PLAIN, 1, 2, 4, .trained = 1},
    {"2 replicas of 2 ranks, tied embedding, 3 submodels", GPT, 2, 2, PLACEMENT_PLAIN, 1, 1, 4,
     .trained = 3},
    {"2 replicas of 2 ranks, tied embedding, clipped", GPT, 2, 2, PLACEMENT_PLAIN, 1, 2, 4,
     .trained = 1, .clip = 0.05},
    {"2 replicas of 1 rank, two all-reduces", WIDE, 2, 1, PLACEMENT_PLAIN, 1, 1, 4, .trained = 1},
    {"2 replicas of 1 rank, a large parameter", LARGE, 2, 1, PLACEMENT_PLAIN, 1, 1, 4,
     .trained = 1},
    {"2 replicas of 2 ranks, resnet", RESNET, 2, 2, PLACEMENT_PLAIN, 1, 1, 4, .trained = 1},
};

enum { STEPS = 6 };

static Recipe recipe_of(const Row *row) {
    return (Recipe){.spec = row->spec,
                    .submodels = row->trained,
                    .steps = STEPS,
                    .batch = row->batch,
                    .clip = row->clip,
                    .micro_batches = row->replicas * row->micro_batches};
}

static PipelineRecipe pipeline_of(const Row *row) {
    return (PipelineRecipe){.placement = row->placement,
                            .ranks = row->ranks,
                            .submodels = row->submodels,
                            .replicas = row->replicas,
                            .settings = {.micro_batches = row->micro_batches}};
}

typedef struct {
    double loss[STEPS];
    int steps;
} Curve;

static int note_loss(void *context, const BcdState *state, const Loss *loss, double lr) {
    Curve *curve = context;
    (void)state;
    (void)lr;
    curve->loss[curve->steps++] = loss->loss_sum;
    return 0;
}

/* CHECKs that all replicas of a rank have the same bits. */
static void check_replicas(const Pipeline *many, TensorRole role, int tensors) {
    engine_memory(many->tiny.engine); /* waits for all ranks */
    int ranks = many->how.ranks;
    for (int r = ranks; r < ranks * many->how.replicas; r++)
        for (int i = 0; i < tensors; i++) {
            Stage *a = many->stage[r % ranks], *b = many->stage[r];
            size_t count = stage_read(a, role, i, NULL);
            if (!CHECK(stage_read(b, role, i, NULL) == count, "sizes of tensor %d", i)) continue;
            real *x = malloc((count + 1) * sizeof *x), *y = malloc((count + 1) * sizeof *y);
            stage_read(a, role, i, x);
            stage_read(b, role, i, y);
            CHECK(memcmp(x, y, count * sizeof *x) == 0, "rank %d: tensor %d of role %d differs", r,
                  i, role);
            free(x);
            free(y);
        }
}

static void check_all_replicas(const Pipeline *many) {
    const Model *m = many->tiny.model;
    check_replicas(many, TENSOR_PARAMETER, m->params);
    check_replicas(many, TENSOR_STATE0, m->params);
    check_replicas(many, TENSOR_BUFFER, m->buffers);
}

static void check_evaluation(const Tiny *one, const Tiny *many) {
    Batch batch = tiny_batch(one, 11);
    Loss x = {0}, y = {0};
    CHECK(engine_evaluate(one->engine, &batch, &x) == 0, "%s", error_message());
    CHECK(engine_evaluate(many->engine, &batch, &y) == 0, "%s", error_message());
    CHECK(x.correct == y.correct && x.count == y.count &&
              fabs(x.loss_sum - y.loss_sum) <= 1e-12 * fabs(x.loss_sum),
          "evaluation: %.17g and %.17g", x.loss_sum, y.loss_sum);
    batch_free(&batch);
}

static void trains_like_one_stage(const void *data) {
    const Row *row = data;
    Recipe recipe = recipe_of(row);
    PipelineRecipe how = pipeline_of(row);
    Tiny one;
    Pipeline many[2];
    Curve alone = {0}, curve[2] = {0};
    tiny_open(&one, &recipe);
    for (int i = 0; i < 2; i++) {
        pipeline_open(&many[i], &recipe, &how);
        if (!CHECK(many[i].tiny.engine, "%s", error_message())) return;
        if (i == 0) check_evaluation(&one, &many[i].tiny);
        CHECK(tiny_train(&many[i].tiny, note_loss, &curve[i]) == 0, "%s", error_message());
    }
    CHECK(tiny_train(&one, note_loss, &alone) == 0, "%s", error_message());
    for (int k = 0; k < STEPS; k++)
        CHECK(fabs(alone.loss[k] - curve[0].loss[k]) <= 1e-5 * fabs(alone.loss[k]),
              "loss %d: %.9g and %.9g", k, alone.loss[k], curve[0].loss[k]);
    CHECK(memcmp(&curve[0], &curve[1], sizeof curve[0]) == 0, "losses differ from run to run");
    tiny_check_same(&many[0].tiny, &many[1].tiny, "again");
    tiny_check_close(&one, &many[0].tiny, STEPS, row->name);
    check_all_replicas(&many[0]);
    for (int i = 0; i < 2; i++) pipeline_close(&many[i]);
    tiny_close(&one);
}

/* ---- running statistics ---- */

static void step(Tiny *tiny, Batch batch) {
    Loss loss;
    tiny_activate(tiny, 0);
    CHECK(engine_step(tiny->engine, &batch, 0.05, &loss) == 0, "%s", error_message());
}

/* After a step the running statistics are the mean, weighted by samples, of those that each
 * replica's share alone would give; those of frozen blocks do not change. */
static void statistics_are_averaged(const void *data) {
    const int samples = *(const int *)data, half = (samples + 1) / 2;
    const double weight[2] = {(double)half / samples, (double)(samples - half) / samples};
    Recipe recipe = {.spec = RESNET, .submodels = 2, .batch = samples};
    PipelineRecipe how = pipeline_plain(2, 1);
    how.replicas = 2;
    Pipeline many;
    Tiny share[2], untouched;
    pipeline_open(&many, &recipe, &how);
    Batch batch = tiny_batch(&many.tiny, samples);
    step(&many.tiny, batch);
    tiny_open(&untouched, &recipe);
    for (int c = 0; c < 2; c++) {
        tiny_open(&share[c], &recipe);
        step(&share[c], batch_slice(&batch, many.tiny.model, c * half, c ? samples : half));
    }
    const Model *m = many.tiny.model;
    for (int i = 0; i < m->buffers; i++) {
        size_t count;
        real *mean = tiny_read(&many.tiny, TENSOR_BUFFER, i, &count);
        real *a = tiny_read(&share[0], TENSOR_BUFFER, i, &count);
        real *b = tiny_read(&share[1], TENSOR_BUFFER, i, &count);
        real *start = tiny_read(&untouched, TENSOR_BUFFER, i, &count);
        bool frozen = many.tiny.settings.partition.of_block[m->buffer[i].block] != 0;
        for (size_t k = 0; k < count; k++) {
            double x = weight[0] * (double)a[k], y = weight[1] * (double)b[k];
            double expected = frozen ? (double)start[k] : x + y;
            double allowed = frozen ? 0 : 3 * (double)REAL_EPS * (fabs(x) + fabs(y));
            CHECK(fabs((double)mean[k] - expected) <= allowed, "buffer %d[%zu]: %g, not %g", i, k,
                  (double)mean[k], expected);
        }
        free(mean);
        free(a);
        free(b);
        free(start);
    }
    check_all_replicas(&many);
    batch_free(&batch);
    for (int c = 0; c < 2; c++) tiny_close(&share[c]);
    tiny_close(&untouched);
    pipeline_close(&many);
}

/* ---- a step that failed ---- */

static int step_of(Pipeline *p, int samples) {
    Batch batch = tiny_batch(&p->tiny, samples);
    Loss loss;
    int failed = engine_step(p->tiny.engine, &batch, 0.05, &loss);
    batch_free(&batch);
    return failed;
}

/* After a step with NaN, the gradients in a replica's memory are NaN.  An empty share in the next
 * step must not use them. */
static void failed_step_is_discarded(void) {
    Recipe recipe = {.spec = LLAMA, .batch = 6};
    PipelineRecipe how = pipeline_plain(2, 1);
    how.replicas = 3;
    Pipeline p, other;
    pipeline_open(&p, &recipe, &how);
    pipeline_open(&other, &recipe, &how);
    tiny_activate(&p.tiny, 1);
    tiny_activate(&other.tiny, 1);
    size_t count;
    int last = p.tiny.model->params - 1;
    Engine *engine = p.tiny.engine;
    real *head = tiny_read(&p.tiny, TENSOR_PARAMETER, last, &count), right = head[0];
    head[0] = (real)NAN;
    CHECK(engine_write(engine, TENSOR_PARAMETER, last, head) == 0, "%s", error_message());
    CHECK(step_of(&p, 6) == -1, "a step with a loss of NaN");
    head[0] = right;
    CHECK(engine_write(engine, TENSOR_PARAMETER, last, head) == 0, "%s", error_message());
    CHECK(step_of(&p, 4) == 0 && step_of(&other, 4) == 0, "%s", error_message());
    tiny_check_same(&p.tiny, &other.tiny, "after a lost step");
    check_all_replicas(&p);
    free(head);
    pipeline_close(&p);
    pipeline_close(&other);
}

void test_pipeline_replicas(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        RUN_ROW(rows[i].name, trains_like_one_stage, &rows[i]);
    static const int even = 4, uneven = 5;
    RUN_ROW("statistics of 2 and 2 samples", statistics_are_averaged, &even);
    RUN_ROW("statistics of 3 and 2 samples", statistics_are_averaged, &uneven);
    RUN(failed_step_is_discarded);
}
