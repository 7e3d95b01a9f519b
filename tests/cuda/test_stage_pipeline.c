/* A pipeline of stages on one device, each a thread with a stream of its own, against one stage:
 * the same training, the same bits, in every precision, with what travels between them in host
 * memory and as messages of the device. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../cuda/message.h"
#include "../../cuda/plan.h"
#include "../../cuda/stage_cuda.h"
#include "../dist/pipeline.h"
#include "../test.h"
#include "drift.h"

#define LLAMA "llama:layers=4,width=8,heads=2,ffn=12,context=6,vocabulary=11"
#define GPT "gpt:layers=4,width=8,heads=2,context=6,vocabulary=11"
#define RESNET "resnet:depth=14,width=4,classes=5,size=8"

typedef struct {
    const char *name, *spec;
    int ranks;
    PlacementKind placement;
    int submodels; /* of a virtual or Figure 2 placement */
    int micro_batches;
    int trained; /* submodels that train in turn; 1: full update */
    ScheduleKind kind;
    bool recompute;
    FrozenNorm frozen_norm;
    OptimizerKind optimizer;
    double clip;
    Order order;
} Row;

static const Row rows[] = {
    {"llama, 1 rank", LLAMA, 1, PLACEMENT_PLAIN, 1, 3, .trained = 3},
    {"llama, 2 ranks", LLAMA, 2, PLACEMENT_PLAIN, 1, 4, .trained = 3, .optimizer = OPTIMIZER_ADAM},
    {"llama, 3 ranks, full update", LLAMA, 3, PLACEMENT_PLAIN, 1, 4, .trained = 1},
    {"llama, 4 ranks, recompute", LLAMA, 4, PLACEMENT_PLAIN, 1, 4, .trained = 2, .recompute = true},
    {"llama, 2 ranks, virtual stages", LLAMA, 2, PLACEMENT_VIRTUAL, 3, 4, .trained = 3},
    {"llama, 2 ranks, virtual stages, full update", LLAMA, 2, PLACEMENT_VIRTUAL, 3, 4, .trained = 1,
     .clip = 0.5},
    {"llama, 3 ranks, figure 2, clipped", LLAMA, 3, PLACEMENT_FIGURE2, 2, 4, .trained = 2,
     .clip = 0.5},
    {"llama, 3 ranks, zero bubble", LLAMA, 3, PLACEMENT_PLAIN, 1, 4, .trained = 3,
     .kind = SCHEDULE_ZERO_BUBBLE},
    {"gpt, 3 ranks, the head alone trains", GPT, 3, PLACEMENT_PLAIN, 1, 2, .trained = 3,
     .order = ORDER_DESCENDING},
    {"resnet, 2 ranks", RESNET, 2, PLACEMENT_PLAIN, 1, 2, .trained = 3},
    {"resnet, 4 ranks, full update", RESNET, 4, PLACEMENT_PLAIN, 1, 2, .trained = 1},
    {"resnet, 2 ranks, batch statistics", RESNET, 2, PLACEMENT_VIRTUAL, 3, 2, .trained = 3,
     .frozen_norm = FROZEN_BATCH},
};

static Recipe recipe_of(const Row *row, Precision precision) {
    return (Recipe){.spec = row->spec,
                    .create = stage_cuda_create,
                    .precision = precision,
                    .submodels = row->trained,
                    .steps = row->order == ORDER_DESCENDING ? 2 : 7,
                    .optimizer = row->optimizer,
                    .clip = row->clip,
                    .order = row->order,
                    .recompute = row->recompute,
                    .frozen_norm = row->frozen_norm,
                    .micro_batches = row->micro_batches};
}

static PipelineRecipe pipeline_of(const Row *row, bool messages) {
    return (PipelineRecipe){.placement = row->placement,
                            .ranks = row->ranks,
                            .submodels = row->submodels,
                            .settings = {.micro_batches = row->micro_batches, .kind = row->kind},
                            .message_free = messages ? message_free : NULL};
}

typedef struct {
    double loss[8];
    int steps;
} Curve;

static int note_loss(void *context, const BcdState *state, const Loss *loss, double lr) {
    Curve *curve = context;
    (void)state;
    (void)lr;
    curve->loss[curve->steps++] = loss->loss_sum + 1e3 * (double)loss->correct;
    return 0;
}

static void compare(const Row *row, Precision precision, bool messages) {
    Recipe recipe = recipe_of(row, precision);
    PipelineRecipe how = pipeline_of(row, messages);
    Tiny one;
    Pipeline many;
    Curve a = {0}, b = {0};
    char what[96];
    snprintf(what, sizeof what, "%s, %s", precision_names[precision],
             messages ? "messages" : "host data");
    tiny_open(&one, &recipe);
    pipeline_open(&many, &recipe, &how);
    if (!CHECK(many.tiny.engine, "%s", error_message())) return;
    CHECK(tiny_train(&one, note_loss, &a) == 0, "%s", error_message());
    CHECK(tiny_train(&many.tiny, note_loss, &b) == 0, "%s", error_message());
    CHECK(a.steps == recipe.steps && memcmp(&a, &b, sizeof a) == 0, "%s: losses differ", what);
    tiny_check_same(&one, &many.tiny, what);
    Batch batch = tiny_batch(&one, 11);
    Loss x, y;
    CHECK(one.engine->is->evaluate(one.engine, &batch, &x) == 0, "%s", error_message());
    CHECK(many.tiny.engine->is->evaluate(many.tiny.engine, &batch, &y) == 0, "%s", error_message());
    CHECK(x.correct == y.correct && fabs(x.loss_sum - y.loss_sum) <= 1e-12 * fabs(x.loss_sum),
          "%s: evaluation: %.17g and %.17g", what, x.loss_sum, y.loss_sum);
    batch_free(&batch);
    pipeline_close(&many);
    tiny_close(&one);
}

static void same_as_one_stage(const void *data) {
    for (Precision p = PRECISION_FP32; p < PRECISIONS; p++)
        for (int messages = 0; messages < 2; messages++) compare(data, p, messages);
}

void test_stage_pipeline(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        RUN_ROW(rows[i].name, same_as_one_stage, &rows[i]);
}
