/* What must not change a training on the device by a single bit: running it again, recording its
 * steps as graphs, recomputing activations, caching the frozen prefix, freezing. */
#include <stdlib.h>
#include <string.h>

#include "../../cuda/stage_cuda.h"
#include "../test.h"
#include "drift.h"

static Stage *create_unrecorded(const Model *model, StageSettings settings) {
    Stage *stage = stage_cuda_create(model, settings);
    if (stage) stage_cuda_tune(stage, (StageTuning){.fuse = true});
    return stage;
}

static Stage *create_unfused(const Model *model, StageSettings settings) {
    Stage *stage = stage_cuda_create(model, settings);
    if (stage) stage_cuda_tune(stage, (StageTuning){.graphs = true});
    return stage;
}

/* Long enough that each submodel's step is recorded and repeated. */
static Recipe training(const void *spec, Precision precision) {
    return (Recipe){.spec = spec,
                    .create = stage_cuda_create,
                    .precision = precision,
                    .steps = 12,
                    .rule = {.kind = SWITCH_STEPS, .every = 4},
                    .optimizer = OPTIMIZER_ADAM,
                    .clip = 0.5,
                    .lr = 0.01};
}

static void check_same_training(const Recipe *a, const Recipe *b, const char *what) {
    Tiny first, second;
    tiny_trained(&first, a);
    tiny_trained(&second, b);
    tiny_check_same(&first, &second, what);
    for (TensorRole role = TENSOR_GRADIENT; role <= TENSOR_STATE1; role++) {
        Snapshot one = snapshot_take(&first, role), two = snapshot_take(&second, role);
        size_t count = one.begin[one.tensors];
        CHECK(count == two.begin[two.tensors] &&
                  memcmp(one.number, two.number, count * sizeof(real)) == 0,
              "%s: %s: tensors of role %d differ", first.model->name, what, (int)role);
        snapshot_free(&one);
        snapshot_free(&two);
    }
    tiny_close(&first);
    tiny_close(&second);
}

/* Call by call where the engine measures its blocks. */
static void check_call_by_call(Recipe recipe) {
    BlockTimes times[16];
    Recipe recorded = recipe;
    recipe.times = times;
    check_same_training(&recorded, &recipe, "call by call");
    recipe.micro_batches = recorded.micro_batches = 3; /* 2, 2 and nothing: of a batch of 4 */
    recipe.batch = recorded.batch = 5;
    check_same_training(&recorded, &recipe, "call by call in parts");
}

static void the_same_bits(const void *spec) {
    for (Precision precision = PRECISION_FP32; precision < PRECISIONS; precision++) {
        Recipe recipe = training(spec, precision), other = recipe;
        check_same_training(&recipe, &other, "a second time");
        other.create = create_unrecorded;
        check_same_training(&recipe, &other, "without graphs");
        other = recipe;
        other.recompute = true;
        check_same_training(&recipe, &other, "recomputed");
        check_call_by_call(recipe);
    }
}

static void fused_or_not(const void *spec) {
    Recipe recipe = training(spec, PRECISION_FP32);
    for (int recompute = 0; recompute < 2; recompute++) {
        recipe.create = create_unfused;
        recipe.recompute = recompute;
        drift_check_training(&recipe, "unfused");
    }
}

/* All on the device, half of it there and half in host memory, all in host memory. */
static void a_cached_prefix(const void *spec) {
    for (Precision precision = PRECISION_FP32; precision <= PRECISION_BF16;
         precision += PRECISION_BF16) {
        Recipe none = training(spec, precision), cached = none;
        none.samples = cached.samples = 8;
        cached.cache_device_bytes = 1 << 20;
        check_same_training(&none, &cached, "cached on the device");
        size_t of_sample = 9 * 16 * sizeof(float); /* about, so that a few fit */
        cached.cache_device_bytes = 4 * of_sample;
        cached.cache_bytes = 1 << 22;
        check_same_training(&none, &cached, "cached in both");
        cached.cache_device_bytes = 0;
        check_same_training(&none, &cached, "cached in host memory");
    }
}

/* ---- freezing -----------------------------------------------------------------------------------
 */

typedef struct {
    const Tiny *tiny;
    uint64_t *hash; /* [blocks], of before the step */
    int changed;
} Watch;

static int frozen_stay(void *context, const BcdState *state, const Loss *loss, double lr) {
    Watch *watch = context;
    const Tiny *tiny = watch->tiny;
    (void)loss;
    (void)lr;
    for (int b = 0; b < tiny->model->blocks; b++) {
        uint64_t hash = tiny_block_hash(tiny, b);
        bool active = tiny->settings.partition.of_block[b] == state->submodel;
        CHECK(active || hash == watch->hash[b], "%s: frozen %s changed in step %d",
              tiny->model->name, tiny->model->block[b].name, (int)state->step);
        CHECK(!active || hash != watch->hash[b], "%s: active %s did not change in step %d",
              tiny->model->name, tiny->model->block[b].name, (int)state->step);
        watch->hash[b] = hash;
    }
    return 0;
}

static void frozen_parameters_keep_their_bits(const void *spec) {
    for (Precision precision = PRECISION_FP32; precision <= PRECISION_BF16;
         precision += PRECISION_BF16) {
        Tiny tiny;
        Recipe recipe = training(spec, precision);
        tiny_open(&tiny, &recipe);
        Watch watch = {&tiny, calloc((size_t)tiny.model->blocks, sizeof(uint64_t)), 0};
        if (!watch.hash) abort();
        for (int b = 0; b < tiny.model->blocks; b++) watch.hash[b] = tiny_block_hash(&tiny, b);
        CHECK(tiny_train(&tiny, frozen_stay, &watch) == 0, "%s", error_message());
        free(watch.hash);
        tiny_close(&tiny);
    }
}

/* Float masters of bf16 weights travel to the host and back at switches. */
static void switches_lose_no_bits(const void *spec) {
    Tiny tiny;
    Recipe recipe = training(spec, PRECISION_BF16);
    tiny_trained(&tiny, &recipe);
    Snapshot before = snapshot_take(&tiny, TENSOR_PARAMETER);
    size_t finer = 0, count = before.begin[before.tensors];
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &before.number[i], sizeof bits);
        finer += (bits & 0xffffu) != 0; /* more than bf16 holds */
    }
    CHECK(finer > count / 2, "only %zu of %zu masters are finer than bf16", finer, count);
    for (int visit = 0; visit < 4; visit++) {
        tiny_activate(&tiny, visit % 3);
        Snapshot after = snapshot_take(&tiny, TENSOR_PARAMETER);
        CHECK(memcmp(before.number, after.number, count * sizeof(real)) == 0,
              "%s: changed by the switch to submodel %d", tiny.model->name, visit % 3);
        snapshot_free(&after);
    }
    snapshot_free(&before);
    tiny_close(&tiny);
}

void test_stage_exact(void) {
    for (int i = 0; tiny_models[i]; i++) {
        RUN_ROW("the same bits", the_same_bits, tiny_models[i]);
        RUN_ROW("fused or not", fused_or_not, tiny_models[i]);
        RUN_ROW("cached prefix", a_cached_prefix, tiny_models[i]);
        RUN_ROW("frozen parameters", frozen_parameters_keep_their_bits, tiny_models[i]);
        RUN_ROW("switches", switches_lose_no_bits, tiny_models[i]);
    }
}
