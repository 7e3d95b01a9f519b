/* Compares whole trainings on the device with the oracle: gradients layer by layer, and up to ten
 * steps with switches of submodel in between. drift.h measures on the oracle how far they may
 * differ. */
#include <stdio.h>
#include <string.h>

#include "../../cuda/device.h"
#include "../../cuda/stage/stage_cuda.h"
#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "../test.h"
#include "device_case.h"
#include "drift.h"

static void gradients_are_the_oracles(const void *spec) {
    for (Precision precision = PRECISION_FP32; precision < PRECISIONS; precision++)
        drift_check_gradients(
            &(Recipe){.spec = spec, .create = stage_cuda_create, .precision = precision});
}

/* Ten steps, two for each submodel; seven, back at the first one, on a slow device; three, one for
 * each, where every access is watched. With its default eps Adam moves a weight whose gradient is
 * only rounding error at the full rate in a random direction. In the coarser precisions a larger
 * eps keeps such steps small. */
static Recipe few_steps(const void *spec, Precision precision) {
    const int steps = device_is_watched() ? 3 : device_is_slow() ? 7 : 10;
    return (Recipe){.spec = spec,
                    .create = stage_cuda_create,
                    .precision = precision,
                    .steps = steps,
                    .rule = {.kind = SWITCH_STEPS, .every = device_is_watched() ? 1 : 2},
                    .lr = 0.01,
                    .eps = precision == PRECISION_FP32 ? 0 : 1e-2};
}

static void steps_are_the_oracles(const void *spec) {
    static const struct {
        Precision precision;
        OptimizerKind optimizer;
        double clip;
    } rows[] = {
        {PRECISION_FP32, OPTIMIZER_ADAM, 0.5}, {PRECISION_BF16, OPTIMIZER_ADAMW, 0},
        {PRECISION_FP32, OPTIMIZER_SGD, 0},    {PRECISION_FP32, OPTIMIZER_ADAMW, 0},
        {PRECISION_TF32, OPTIMIZER_SGD, 0},    {PRECISION_BF16, OPTIMIZER_SGD, 0.5},
        {PRECISION_FP32, OPTIMIZER_MUON, 0.5},
    };
    /* Muon has no row in bf16: it brings small singular values of a gradient near 1, and in bf16
     * these are roundings of the values, which the drift of perturbed weights does not show.  Its
     * update in bf16 is in the suite device_update.
     *
     * Where every access is watched, the first two rows are enough: the suite device_update tests
     * the optimizers, and other suites run the products of tf32. */
    size_t count = device_is_watched() ? 2 : sizeof rows / sizeof *rows;
    for (size_t i = 0; i < count; i++) {
        Recipe recipe = few_steps(spec, rows[i].precision);
        char what[64];
        recipe.optimizer = rows[i].optimizer;
        recipe.clip = rows[i].clip;
        snprintf(what, sizeof what, "%s %s", precision_names[recipe.precision],
                 optimizer_names[recipe.optimizer]);
        drift_check_training(&recipe, what);
    }
}

static bool has_batch_norm(const char *spec) {
    Model *model = model_create(spec);
    if (!model) return CHECK(false, "%s", error_message());
    const bool has = model->buffers > 0; /* running statistics */
    model_free(model);
    return has;
}

/* Settings of a training that change its numbers by rounding only. */
static void ways_of_training(const void *spec) {
    Recipe recompute = few_steps(spec, PRECISION_FP32), parts = recompute, whole = recompute;
    Recipe batch_norm = recompute, kept = few_steps(spec, PRECISION_BF16);
    recompute.recompute = true;
    drift_check_training(&recompute, "recompute");
    parts.batch = 7;
    parts.micro_batches = 3; /* of 3, 3 and 1 */
    parts.clip = 0.5;
    parts.order = ORDER_GAUSS_SOUTHWELL;
    parts.always = "ends"; /* their optimizer state counts every update */
    drift_check_training(&parts, "micro-batches, by the largest gradient, ends always active");
    kept.keep_state = true;
    kept.optimizer = OPTIMIZER_ADAM;
    drift_check_training(&kept, "kept state");
    whole.submodels = 1;
    drift_check_training(&whole, "full update");
    batch_norm.frozen_norm = FROZEN_BATCH;
    if (has_batch_norm(spec)) drift_check_training(&batch_norm, "frozen norms of the batch");
}

static void offload_is_a_full_update(const void *spec) {
    for (int clipped = 0; clipped < 2; clipped++) {
        Recipe recipe = few_steps(spec, clipped ? PRECISION_FP32 : PRECISION_BF16);
        recipe.offload = true;
        recipe.submodels = 1;
        recipe.optimizer = clipped ? OPTIMIZER_MUON : OPTIMIZER_ADAMW;
        recipe.clip = clipped ? 0.5 : 0;
        recipe.batch = 6;
        recipe.micro_batches = 1 + clipped;
        drift_check_training(&recipe, clipped ? "offload, Muon, clipped, parts" : "offload bf16");
    }
}

/* With submodels and offload only the gradients of the active submodel are copied to the host. */
static void offload_and_submodels(const void *spec) {
    Recipe recipe = few_steps(spec, PRECISION_BF16);
    recipe.offload = true;
    recipe.keep_state = true;
    drift_check_training(&recipe, "offload of submodels");
}

/* Without clipping only the end of the step waits for the device, so the failure must show
 * there. */
static void offload_reports_failures(const void *spec) {
    Recipe recipe = few_steps(spec, PRECISION_FP32);
    Tiny tiny;
    Loss loss;
    recipe.offload = true;
    recipe.submodels = 1;
    tiny_open(&tiny, &recipe);
    tiny_activate(&tiny, 0);
    Batch batch = tiny_batch(&tiny, 2);
    device_note("planted: a lost launch");
    CHECK(engine_step(tiny.engine, &batch, 0.01, &loss) == -1 && strstr(error_message(), "planted"),
          "%s", error_message());
    batch_free(&batch);
    tiny_close(&tiny);
}

void test_stage(void) {
    RUN_ROW("offload, a failure", offload_reports_failures, tiny_models[0]);
    for (int i = 0; tiny_models[i]; i++) {
        RUN_ROW("gradients", gradients_are_the_oracles, tiny_models[i]);
        RUN_ROW("steps", steps_are_the_oracles, tiny_models[i]);
        RUN_ROW("ways", ways_of_training, tiny_models[i]);
        RUN_ROW("offload", offload_is_a_full_update, tiny_models[i]);
        RUN_ROW("offload, submodels", offload_and_submodels, tiny_models[i]);
    }
}
