#include "pipeline_cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../test.h"

#define GROUPED                                                                            \
    "llama:layers=4,width=8,heads=4,ffn=12,context=6,vocabulary=11,groups=2,rope_base=50," \
    "rope_factor=2"

const PipelineRow pipeline_rows[] = {
    {"llama, 1 rank", LLAMA, 1, PLACEMENT_PLAIN, 1, 2, .trained = 3},
    {"llama, 2 ranks", LLAMA, 2, PLACEMENT_PLAIN, 1, 4, .trained = 3},
    {"llama, 3 ranks, full update", LLAMA, 3, PLACEMENT_PLAIN, 1, 4, .trained = 1},
    {"llama, 4 ranks, recompute", LLAMA, 4, PLACEMENT_PLAIN, 1, 4, .trained = 2, .recompute = true},
    {"llama, 2 ranks, virtual stages", LLAMA, 2, PLACEMENT_VIRTUAL, 3, 4, .trained = 3},
    {"llama, 2 ranks, virtual stages, full update", LLAMA, 2, PLACEMENT_VIRTUAL, 3, 4,
     .trained = 1},
    {"llama, 3 ranks, figure 2", LLAMA, 3, PLACEMENT_FIGURE2, 2, 4, .trained = 2},
    {"llama, 2 ranks, zero bubble", LLAMA, 2, PLACEMENT_PLAIN, 1, 4, SCHEDULE_ZERO_BUBBLE,
     .trained = 3},
    {"llama, 3 ranks, zero bubble, full update", LLAMA, 3, PLACEMENT_PLAIN, 1, 4,
     SCHEDULE_ZERO_BUBBLE, .trained = 1},
    {"llama, 4 ranks, zero bubble, recompute", LLAMA, 4, PLACEMENT_PLAIN, 1, 4,
     SCHEDULE_ZERO_BUBBLE, .trained = 2, .recompute = true},
    {"llama, 2 ranks, virtual stages, zero bubble", LLAMA, 2, PLACEMENT_VIRTUAL, 3, 4,
     SCHEDULE_ZERO_BUBBLE, .trained = 3},
    {"llama, 2 ranks, virtual stages, zero bubble, full update, clipped", LLAMA, 2,
     PLACEMENT_VIRTUAL, 3, 4, SCHEDULE_ZERO_BUBBLE, .clip = 0.05, .trained = 1},
    {"llama, 3 ranks, figure 2, zero bubble, adam", LLAMA, 3, PLACEMENT_FIGURE2, 2, 4,
     SCHEDULE_ZERO_BUBBLE, .optimizer = OPTIMIZER_ADAM, .trained = 2},
    {"llama, 4 ranks, zero bubble, a part without samples", LLAMA, 4, PLACEMENT_PLAIN, 1, 3,
     SCHEDULE_ZERO_BUBBLE, .trained = 1},
    {"llama, 1 rank, virtual stages", LLAMA, 1, PLACEMENT_VIRTUAL, 3, 4, .trained = 3},
    {"llama, 1 rank, virtual stages, full update", LLAMA, 1, PLACEMENT_VIRTUAL, 3, 4, .trained = 1},
    {"llama, 1 rank, virtual stages, zero bubble, full update", LLAMA, 1, PLACEMENT_VIRTUAL, 3, 4,
     SCHEDULE_ZERO_BUBBLE, .trained = 1},
    {"llama, 1 rank, virtual stages, zero bubble", LLAMA, 1, PLACEMENT_VIRTUAL, 3, 4,
     SCHEDULE_ZERO_BUBBLE, .trained = 3},
    {"llama, 3 ranks, adam, clipped", LLAMA, 3, PLACEMENT_PLAIN, 1, 2, .optimizer = OPTIMIZER_ADAM,
     .clip = 0.05, .trained = 3},
    {"llama, 2 ranks, virtual stages, zero bubble, muon, clipped", LLAMA, 2, PLACEMENT_VIRTUAL, 3,
     4, SCHEDULE_ZERO_BUBBLE, .optimizer = OPTIMIZER_MUON, .clip = 0.05, .trained = 3},
    {"llama, 3 ranks, ends always active", LLAMA, 3, PLACEMENT_PLAIN, 1, 2,
     .optimizer = OPTIMIZER_ADAM, .always = "ends", .trained = 2},
    {"llama, 3 ranks, one micro-batch", LLAMA, 3, PLACEMENT_PLAIN, 1, 1, .trained = 3},
    {"llama, 2 ranks, a part without samples", LLAMA, 2, PLACEMENT_PLAIN, 1, 3, .trained = 3},
    {"grouped, 3 ranks, adam", GROUPED, 3, PLACEMENT_PLAIN, 1, 2, .optimizer = OPTIMIZER_ADAM,
     .trained = 3},
    {"grouped, 2 ranks, virtual stages, zero bubble, recompute", GROUPED, 2, PLACEMENT_VIRTUAL, 3,
     4, SCHEDULE_ZERO_BUBBLE, .recompute = true, .trained = 2},
    {"resnet, 2 ranks", RESNET, 2, PLACEMENT_PLAIN, 1, 2, .trained = 3},
    {"resnet, 4 ranks, full update", RESNET, 4, PLACEMENT_PLAIN, 1, 2, .trained = 1},
    {"resnet, 2 ranks, virtual stages", RESNET, 2, PLACEMENT_VIRTUAL, 3, 2, .trained = 3},
    {"resnet, 2 ranks, zero bubble", RESNET, 2, PLACEMENT_PLAIN, 1, 2, SCHEDULE_ZERO_BUBBLE,
     .trained = 3},
    {"resnet, 4 ranks, zero bubble, full update, recompute", RESNET, 4, PLACEMENT_PLAIN, 1, 2,
     SCHEDULE_ZERO_BUBBLE, .recompute = true, .trained = 1},
    {"resnet, 3 ranks, batch statistics", RESNET, 3, PLACEMENT_PLAIN, 1, 2,
     .frozen_norm = FROZEN_BATCH, .trained = 3},
    {0},
};

static Recipe recipe_of(const PipelineRow *row, const StageKind *kind) {
    return (Recipe){.spec = row->spec,
                    .create = kind->create,
                    .precision = kind->precision,
                    .submodels = row->trained,
                    .steps = 7,
                    .optimizer = row->optimizer,
                    .clip = row->clip,
                    .always = row->always,
                    .recompute = row->recompute,
                    .frozen_norm = row->frozen_norm,
                    .micro_batches = row->micro_batches};
}

static PipelineRecipe pipeline_of(const PipelineRow *row, const StageKind *kind) {
    return (PipelineRecipe){.placement = row->placement,
                            .ranks = row->ranks,
                            .submodels = row->submodels,
                            .settings = {.micro_batches = row->micro_batches, .kind = row->kind},
                            .message_free = kind->message_free,
                            .join = kind->join};
}

static bool train_and_evaluate(Tiny *tiny, TinyCurve *curve, Loss *evaluated) {
    if (!CHECK(tiny->engine && tiny_train(tiny, tiny_note_loss, curve) == 0, "%s", error_message()))
        return false;
    Batch batch = tiny_batch(tiny, 11);
    CHECK(engine_evaluate(tiny->engine, &batch, evaluated) == 0, "%s", error_message());
    batch_free(&batch);
    return true;
}

static void check_same_single(const Pipeline *many, const Recipe *recipe, const TinyCurve *b,
                              const Loss *y, const char *what) {
    Tiny one;
    TinyCurve a = {0};
    Loss x = {0};
    tiny_open(&one, recipe);
    if (!train_and_evaluate(&one, &a, &x)) return;
    CHECK(a.steps == 7 && memcmp(&a, b, sizeof a) == 0, "%s: losses differ", what);
    tiny_check_same(&one, &many->tiny, what);
    CHECK(x.correct == y->correct && x.loss_sum == y->loss_sum, "evaluation: %.17g and %.17g",
          x.loss_sum, y->loss_sum);
    tiny_close(&one);
}

void pipeline_check_same(const PipelineRow *row, const StageKind *kind) {
    Recipe recipe = recipe_of(row, kind);
    PipelineRecipe how = pipeline_of(row, kind);
    Pipeline many;
    TinyCurve curve = {0};
    Loss evaluated = {0};
    /* The pipeline first, as in a process of its own: it chooses the algorithms of products. */
    pipeline_open(&many, &recipe, &how);
    if (!train_and_evaluate(&many.tiny, &curve, &evaluated)) return;
    if (!kind->alone) check_same_single(&many, &recipe, &curve, &evaluated, kind->name);
    pipeline_close(&many);
}

void pipeline_check_slots(int ranks, const StageKind *kind) {
    Recipe recipe = {.spec = LLAMA,
                     .create = kind->create,
                     .precision = kind->precision,
                     .steps = 4,
                     .batch = 8,
                     .micro_batches = 8};
    for (int full = 0; full < 2; full++) {
        recipe.submodels = full ? 1 : 3;
        recipe.rule.every = full ? 4 : 1;
        Tiny one;
        tiny_trained(&one, &recipe);
        for (PlacementKind placement = 0; placement < PLACEMENTS; placement++)
            for (ScheduleKind order = 0; order < SCHEDULE_KINDS; order++) {
                int submodels = placement == PLACEMENT_VIRTUAL && ranks < 3 ? 3 : 1;
                PipelineRecipe how = {placement,
                                      ranks,
                                      submodels,
                                      .settings = {.micro_batches = 8, .kind = order},
                                      .message_free = kind->message_free,
                                      .join = kind->join};
                Pipeline many;
                pipeline_open(&many, &recipe, &how);
                CHECK(tiny_train(&many.tiny, NULL, NULL) == 0, "%s", error_message());
                tiny_check_same(&one, &many.tiny, placement_names[placement]);
                pipeline_close(&many);
            }
        tiny_close(&one);
    }
}

/* ---- tied embedding ---- */

static Recipe recipe_with(const char *spec, const StageKind *kind) {
    return (Recipe){
        .spec = spec, .create = kind->create, .precision = kind->precision, .micro_batches = 2};
}

static PipelineRecipe plain(int ranks, const StageKind *kind) {
    PipelineRecipe how = pipeline_plain(ranks, 2);
    how.message_free = kind->message_free;
    how.join = kind->join;
    return how;
}

/* The head's and the embedding's parts of a tied gradient are summed separately and then added,
 * instead of one after the other as on one stage. */
static void check_tied(const char *spec, int ranks, ScheduleKind order, double clip,
                       const StageKind *kind) {
    Recipe recipe = recipe_with(spec, kind);
    PipelineRecipe how = plain(ranks, kind);
    recipe.steps = 6;
    recipe.clip = clip;
    how.settings.kind = order;
    char what[200];
    Tiny one;
    Pipeline many;
    tiny_trained(&one, &recipe);
    pipeline_open(&many, &recipe, &how);
    CHECK(tiny_train(&many.tiny, NULL, NULL) == 0, "%s", error_message());
    snprintf(what, sizeof what, "%s, clip %g", spec, clip);
    tiny_check_close(&one, &many.tiny, recipe.steps, what);
    pipeline_close(&many);
    tiny_close(&one);
}

/* While the embedding is frozen, every sum has the order of one stage. */
static void check_frozen_tied(const char *spec, const StageKind *kind) {
    Recipe recipe = recipe_with(spec, kind);
    PipelineRecipe how = plain(3, kind);
    recipe.steps = 2;
    recipe.order = ORDER_DESCENDING;
    Tiny one;
    Pipeline many;
    tiny_trained(&one, &recipe);
    pipeline_open(&many, &recipe, &how);
    CHECK(tiny_train(&many.tiny, NULL, NULL) == 0, "%s", error_message());
    tiny_check_same(&one, &many.tiny, "the last submodel");
    pipeline_close(&many);
    tiny_close(&one);
}

void pipeline_check_tied(int ranks, ScheduleKind order, const StageKind *kind) {
    static const char *specs[] = {GPT, GROUPED ",tied=1"};
    for (int i = 0; i < 2; i++) {
        check_tied(specs[i], ranks, order, 0, kind);
        check_tied(specs[i], ranks, order, 0.05, kind);
    }
}

void pipeline_check_frozen_tied(const StageKind *kind) {
    check_frozen_tied(GPT, kind);
    check_frozen_tied(GROUPED ",tied=1", kind);
}

/* ---- pre-inference ---- */

void pipeline_check_infer(const StageKind *kind, int batch) {
    static const int infer_ranks[] = {3, 2, 0};
    Recipe recipe = recipe_with(LLAMA, kind);
    PipelineRecipe how = plain(3, kind);
    Pipeline without, with;
    recipe.batch = batch;
    recipe.micro_batches = how.settings.micro_batches = batch / 2;
    pipeline_open(&without, &recipe, &how);
    CHECK(tiny_train(&without.tiny, NULL, NULL) == 0, "%s", error_message());
    recipe.cache_bytes = 1 << 20;
    how.pre_infer = true;
    for (int i = 0; i < 3; i++) {
        how.settings.infer_ranks = infer_ranks[i];
        pipeline_open(&with, &recipe, &how);
        CHECK(tiny_train(&with.tiny, NULL, NULL) == 0, "%s", error_message());
        tiny_check_same(&without.tiny, &with.tiny, kind->name);
        pipeline_close(&with);
    }
    pipeline_close(&without);
}

/* ---- failures ---- */

static void check_bad_loss(const char *spec, int replicas, int samples, int submodel,
                           const StageKind *kind) {
    Recipe recipe = recipe_with(spec, kind);
    PipelineRecipe how = plain(replicas > 1 ? 2 : 3, kind);
    how.replicas = replicas;
    Pipeline many;
    pipeline_open(&many, &recipe, &how);
    Engine *engine = many.tiny.engine;
    int blocks = many.tiny.model->blocks;
    tiny_activate(&many.tiny, submodel);
    size_t count;
    int last = many.tiny.model->params - 1;
    real *head = tiny_read(&many.tiny, TENSOR_PARAMETER, last, &count);
    head[0] = (real)NAN;
    CHECK(engine_write(engine, TENSOR_PARAMETER, last, head) == 0, "%s", error_message());
    uint64_t *before = malloc((size_t)blocks * sizeof *before);
    for (int b = 0; b < blocks; b++) before[b] = tiny_block_hash(&many.tiny, b);
    Batch batch = tiny_batch(&many.tiny, samples);
    Loss loss;
    CHECK(engine_step(engine, &batch, 0.1, &loss) == -1, "a step with a loss of NaN");
    CHECK(strstr(error_message(), "the loss is"), "\"%s\"", error_message());
    for (int b = 0; b < blocks; b++)
        CHECK(tiny_block_hash(&many.tiny, b) == before[b], "%s, submodel %d: %s moved", spec,
              submodel, many.tiny.model->block[b].name);
    batch_free(&batch);
    free(before);
    free(head);
    pipeline_close(&many);
}

/* Every rank fails with the error of one device, and nothing changes, not even the running
 * statistics. This includes a replica without samples, which would have taken over those of the
 * others. */
void pipeline_check_bad_loss(const StageKind *kind) {
    check_bad_loss(LLAMA, 1, 4, 1, kind);
    for (int submodel = 0; submodel < 3; submodel++) {
        check_bad_loss(RESNET, 1, 4, submodel, kind);
        check_bad_loss(RESNET, 2, 4, submodel, kind);
        check_bad_loss(RESNET, 2, 1, submodel, kind);
    }
}
