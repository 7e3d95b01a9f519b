/* What must not change a single bit of a training on the device: a second run, steps captured as
 * graphs, recomputed activations, a cached prefix, frozen blocks. */
#include <stdlib.h>
#include <string.h>

#include "../../cuda/stage/stage_cuda.h"
#include "../test.h"
#include "device_case.h"
#include "drift.h"

static Stage *create_uncaptured(const Model *model, StageSettings settings) {
    Stage *stage = stage_cuda_create(model, settings);
    if (stage) stage_cuda_tune(stage, (StageTuning){.fuse = true});
    return stage;
}

static Stage *create_unfused(const Model *model, StageSettings settings) {
    Stage *stage = stage_cuda_create(model, settings);
    if (stage) stage_cuda_tune(stage, (StageTuning){.graphs = true});
    return stage;
}

typedef struct {
    const char *spec;
    Precision precision;
} ExactRow;

/* The step of each submodel runs call by call, is then captured and launched, and is launched
 * again. */
static Recipe training(const void *spec, Precision precision) {
    return (Recipe){.spec = spec,
                    .create = stage_cuda_create,
                    .precision = precision,
                    .steps = 9,
                    .rule = {.kind = SWITCH_STEPS, .every = 3},
                    .optimizer = OPTIMIZER_ADAM,
                    .clip = 0.5,
                    .lr = 0.01};
}

/* Trains, and CHECKs that everything is as after the first training. */
static void check_same(const Tiny *first, const Recipe *recipe, const char *what) {
    Tiny second;
    tiny_trained(&second, recipe);
    tiny_check_same(first, &second, what);
    for (TensorRole role = TENSOR_GRADIENT; role <= TENSOR_STATE1; role++)
        snapshot_check_same(first, &second, role, what);
    tiny_close(&second);
}

/* The same where no step is captured.  Where every access is watched, a step of each submodel makes
 * them all, and other builds compare the bits. */
static void check_same_uncaptured(const Tiny *first, const Recipe *recipe, const char *what) {
    if (!device_is_watched()) {
        check_same(first, recipe, what);
        return;
    }
    Recipe fewer = *recipe;
    fewer.steps = recipe->steps / (int)recipe->rule.every;
    fewer.rule.every = 1;
    Tiny tiny;
    tiny_trained(&tiny, &fewer);
    tiny_close(&tiny);
}

static void the_same_bits(const void *row) {
    const ExactRow *r = row;
    BlockTimes times[16];
    Recipe recipe = training(r->spec, r->precision), other = recipe;
    Tiny first;
    tiny_trained(&first, &recipe);
    device_choose_order(1); /* of the threads, if it can be chosen */
    if (!device_is_watched()) check_same(&first, &other, "a second time");
    device_choose_order(0);
    other.create = create_uncaptured;
    check_same_uncaptured(&first, &other, "without graphs");
    other = recipe;
    other.recompute = true;
    check_same(&first, &other, "recomputed");
    other = recipe;
    other.times = times; /* a step that is timed runs block by block */
    check_same_uncaptured(&first, &other, "call by call");
    tiny_close(&first);
}

static void the_same_bits_in_parts(const void *row) {
    const ExactRow *r = row;
    BlockTimes times[16];
    Recipe recipe = training(r->spec, r->precision);
    Tiny first;
    recipe.batch = 5;
    recipe.micro_batches = 3; /* of 2, 2 and 1 */
    tiny_trained(&first, &recipe);
    recipe.times = times;
    check_same_uncaptured(&first, &recipe, "call by call in parts");
    tiny_close(&first);
}

static void fused_or_not(const void *spec) {
    Recipe recipe = training(spec, PRECISION_FP32);
    for (int recompute = 0; recompute < 2; recompute++) {
        recipe.create = create_unfused;
        recipe.recompute = recompute;
        drift_check_training(&recipe, "unfused");
    }
}

/* The cache is on the device, divided between device and host memory, or in host memory. */
static void a_cached_prefix(const void *row) {
    const ExactRow *r = row;
    Recipe recipe = training(r->spec, r->precision);
    Tiny none;
    recipe.samples = 8;
    tiny_trained(&none, &recipe);
    recipe.cache_device_bytes = 1 << 20;
    check_same(&none, &recipe, "cached on the device");
    recipe.cache_device_bytes = 1 << 11; /* space for a few samples of the smallest outputs */
    recipe.cache_bytes = 1 << 22;
    check_same(&none, &recipe, "cached in both");
    recipe.cache_device_bytes = 0;
    check_same(&none, &recipe, "cached in host memory");
    tiny_close(&none);
}

/* ---- freezing ---- */

typedef struct {
    const Tiny *tiny;
    uint64_t *hash; /* [blocks], before the step */
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

static void frozen_parameters_keep_their_bits(const void *row) {
    const ExactRow *r = row;
    Tiny tiny;
    Recipe recipe = training(r->spec, r->precision);
    tiny_open(&tiny, &recipe);
    Watch watch = {&tiny, calloc((size_t)tiny.model->blocks, sizeof(uint64_t))};
    if (!watch.hash) abort();
    for (int b = 0; b < tiny.model->blocks; b++) watch.hash[b] = tiny_block_hash(&tiny, b);
    CHECK(tiny_train(&tiny, frozen_stay, &watch) == 0, "%s", error_message());
    free(watch.hash);
    tiny_close(&tiny);
}

/* Float masters of bf16 weights go to the host and back at switches. */
static void switches_lose_no_bits(const void *spec) {
    Tiny tiny;
    Recipe recipe = training(spec, PRECISION_BF16);
    tiny_trained(&tiny, &recipe);
    Snapshot before = snapshot_take(&tiny, TENSOR_PARAMETER);
    size_t finer = 0, count = before.begin[before.tensors];
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &before.number[i], sizeof bits);
        finer += (bits & 0xffffu) != 0; /* numbers with more bits than bf16 holds */
    }
    CHECK(finer > count / 2, "only %zu of %zu masters are finer than bf16", finer, count);
    for (int phase = 0; phase < 4; phase++) {
        tiny_activate(&tiny, phase % 3);
        Snapshot after = snapshot_take(&tiny, TENSOR_PARAMETER);
        CHECK(memcmp(before.number, after.number, count * sizeof(real)) == 0,
              "%s: changed by the switch to submodel %d", tiny.model->name, phase % 3);
        snapshot_free(&after);
    }
    snapshot_free(&before);
    tiny_close(&tiny);
}

/* Returns true if this model takes its turn in this precision, where a device is slow. For what
 * concerns memory and not numbers, models alternate between float and bf16: the code depends on the
 * size of a value, and not on which model it is. A model of images and some of tokens train in tf32
 * too, where accesses are not watched and the kernels are not those of another suite. */
static bool its_turn(int model, Precision precision) {
    if (precision == PRECISION_TF32)
        return model % 3 == 0 && !device_is_watched() && !device_stands_in();
    return precision == (model % 2 ? PRECISION_BF16 : PRECISION_FP32);
}

void test_stage_exact(void) {
    for (int i = 0; tiny_models[i]; i++) {
        /* One model of images and one of tokens; on the stand-ins for libraries all others behave
         * alike. */
        if (device_stands_in() && i % 3) continue;
        RUN_ROW("fused or not", fused_or_not, tiny_models[i]);
        RUN_ROW("switches", switches_lose_no_bits, tiny_models[i]);
        for (Precision p = PRECISION_FP32; p < PRECISIONS; p++) {
            if (device_is_slow() && !its_turn(i, p)) continue;
            ExactRow row = {tiny_models[i], p};
            RUN_ROW("the same bits", the_same_bits, &row);
            if (p == PRECISION_TF32) continue; /* it changes only how products round */
            RUN_ROW("in parts", the_same_bits_in_parts, &row);
            RUN_ROW("cached prefix", a_cached_prefix, &row);
            RUN_ROW("frozen parameters", frozen_parameters_keep_their_bits, &row);
        }
    }
}
