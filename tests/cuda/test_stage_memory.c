/* The memory of a stage: bytes by role are those planned, tensors are unchanged when they go from
 * one device to another, and a failed step does not change parameters. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../cuda/stage/plan.h"
#include "../../cuda/stage/stage_cuda.h"
#include "../../cuda/stage/stage_internal.h"
#include "../../ref/memory.h"
#include "../test.h"
#include "device_case.h"
#include "drift.h"
#include "planned.h"

/* ---- bytes ---- */

/* On the host are float masters of bf16 weights; with offload masters, gradients and state, and
 * bf16 weights on their way to the device; and staging buffers, of which the batch has two. */
static void check_host(const Tiny *tiny, int submodel, const size_t host[MEM_ROLES]) {
    const StageSettings *s = &tiny->stage->settings;
    bool bf16 = s->precision == PRECISION_BF16;
    size_t all = tiny->model->param_count, own = tiny->settings.partition.params[submodel];
    size_t states = 0, update = host_update_bytes(tiny->model, s);
    for (int p = 0; p < tiny->model->params; p++)
        if (tiny->settings.partition.of_block[tiny->model->param[p].block] == submodel)
            states += memory_state_count(tiny->model, &s->optimizer, p, p + 1);
    size_t masters = bf16 || s->offload ? 4 * all : 0, weights = bf16 && s->offload ? 2 * all : 0;
    CHECK(host[MEM_PARAMETERS] == masters + weights, "%zu bytes of masters", host[MEM_PARAMETERS]);
    CHECK(host[MEM_GRADIENTS] == (s->offload ? 4 * own : 0) &&
              host[MEM_STATE] == (s->offload ? 4 * states : 0),
          "%zu bytes of gradients and %zu of state on the host", host[MEM_GRADIENTS],
          host[MEM_STATE]);
    CHECK(host[MEM_WORKSPACE] ==
              2 * fixed_offsets(tiny->model, s).sent + STAGING_BYTES + (s->offload ? update : 0),
          "%zu bytes of buffers on the host", host[MEM_WORKSPACE]);
}

static void check_bytes(const Tiny *tiny, int submodel) {
    bool active[64];
    char who[450];
    size_t host[MEM_ROLES];
    partition_active(&tiny->settings.partition, tiny->model, submodel, active);
    snprintf(who, sizeof who, "%s, submodel %d", tiny->model->name, submodel);
    check_planned(host, tiny->stage, engine_memory(tiny->engine), active, who);
    check_host(tiny, submodel, host);
}

static void counted_is_planned(const void *spec) {
    for (int way = 0; way < 16; way++) {
        Recipe recipe = {.spec = spec,
                         .create = stage_cuda_create,
                         .precision = way & 1 ? PRECISION_BF16 : PRECISION_FP32,
                         .recompute = way & 2,
                         .offload = way & 4,
                         .optimizer = (OptimizerKind)(way % OPTIMIZER_KINDS)};
        Tiny tiny;
        size_t largest = 0;
        tiny_open(&tiny, &recipe);
        const MemCount *counted = engine_memory(tiny.engine);
        for (int submodel = 0; submodel < 3; submodel++) {
            tiny_activate(&tiny, submodel);
            check_bytes(&tiny, submodel);
            if (counted->total_current > largest) largest = counted->total_current;
        }
        CHECK(counted->total_peak == largest, "a peak of %zu bytes, the largest submodel has %zu",
              counted->total_peak, largest);
        tiny_close(&tiny);
    }
}

/* No device has so much memory. The error names the role that asked for it. */
static void a_refusal_names_role_and_bytes(void) {
    CudaStage stage = {.base = {.is = NULL}};
    const MemCount *counted = &stage.base.memory;
    Arena arena;
    const size_t bytes = (size_t)1 << 60;
    if (!CHECK(arena_open(&stage, &arena, MEM_STATE, bytes, bytes) == -1, "it was there")) return;
    CHECK(strstr(error_message(), "1152921504606846976 bytes for state"), "\"%s\"",
          error_message());
    CHECK(counted->total_current == 0 && counted->total_peak == 0, "counted all the same");
    arena_close(&stage, &arena);
}

static void tensors_exist_as_in_the_oracle(const void *spec) {
    for (int offload = 0; offload < 2; offload++)
        for (int kept = 0; kept < 2; kept++) {
            Tiny ours, oracle;
            Recipe recipe = {.spec = spec, .keep_state = kept, .steps = 4};
            if (offload == kept) recipe.optimizer = OPTIMIZER_MUON;
            tiny_trained(&oracle, &recipe);
            recipe.create = stage_cuda_create;
            recipe.offload = offload;
            tiny_trained(&ours, &recipe);
            for (TensorRole role = TENSOR_GRADIENT; role <= TENSOR_STATE1; role++)
                for (int p = 0; p < ours.model->params; p++) {
                    size_t got = engine_read(ours.engine, role, p, NULL);
                    size_t expected = engine_read(oracle.engine, role, p, NULL);
                    CHECK(got == expected, "%s: role %d has %zu numbers, not %zu",
                          ours.model->param[p].name, (int)role, got, expected);
                }
            for (int b = 0; b < ours.model->blocks; b++)
                CHECK(engine_optimizer_step(ours.engine, b) ==
                          engine_optimizer_step(oracle.engine, b),
                      "%s has another optimizer step", ours.model->block[b].name);
            tiny_close(&ours);
            tiny_close(&oracle);
        }
}

/* ---- from one device to another ---- */

/* Copies what a checkpoint holds from the CPU to a device and from there to another CPU stage. */
static void to_the_device_and_back(const void *spec) {
    for (int way = 0; way < 8; way++) {
        Tiny cpu, device, back;
        Recipe recipe = {.spec = spec, .optimizer = OPTIMIZER_ADAM, .steps = 5};
        if (way & 4) recipe.optimizer = OPTIMIZER_MUON;
        recipe.keep_state = way & 1;
        tiny_trained(&cpu, &recipe);
        tiny_open(&back, &recipe);
        recipe.create = stage_cuda_create;
        recipe.precision = way & 1 ? PRECISION_BF16 : PRECISION_FP32;
        recipe.offload = way & 2;
        tiny_open(&device, &recipe);
        tiny_restore(&cpu, &device);
        tiny_restore(&device, &back);
        static const TensorRole roles[] = {TENSOR_PARAMETER, TENSOR_BUFFER, TENSOR_STATE0,
                                           TENSOR_STATE1};
        for (int r = 0; r < 4; r++) {
            snapshot_check_same(&cpu, &device, roles[r], "on the device");
            snapshot_check_same(&cpu, &back, roles[r], "back from the device");
        }
        tiny_close(&cpu);
        tiny_close(&device);
        tiny_close(&back);
    }
}

static void starts_are_the_same(const void *spec) {
    for (Precision precision = PRECISION_FP32; precision < PRECISIONS; precision++) {
        Tiny cpu, device;
        Recipe recipe = {.spec = spec};
        tiny_open(&cpu, &recipe);
        recipe.create = stage_cuda_create;
        recipe.precision = precision;
        tiny_open(&device, &recipe);
        tiny_check_same(&cpu, &device, "the start");
        tiny_close(&cpu);
        tiny_close(&device);
    }
}

static Stage *create_unwritten(const Model *model, StageSettings settings) {
    settings.skip_init = true;
    return stage_cuda_create(model, settings);
}

/* CHECKs that nothing has been written to the weights: fresh memory is NaN where the device is
 * slow. */
static void check_unwritten(const Tiny *tiny) {
    CudaStage *s = cuda_stage(tiny->stage);
    for (int p = 0; p < tiny->model->params && device_is_slow(); p++) {
        float first;
        CHECK(
            transfer_to_host(s, &first, weight_at(s, p), value_bytes(&s->base.settings), 1) == 0 &&
                isnan(first),
            "%s begins with %g", tiny->model->param[p].name, (double)first);
    }
}

/* Without initial values a stage has running statistics alone.  When all that a checkpoint holds
 * has been written, it trains with the same bits as another. */
static void a_start_may_be_left_out(const void *spec) {
    for (int way = 0; way < 4; way++) {
        Tiny drawn, restored;
        Recipe recipe = {.spec = spec,
                         .create = stage_cuda_create,
                         .precision = way & 1 ? PRECISION_BF16 : PRECISION_FP32,
                         .offload = way & 2,
                         .steps = 4};
        tiny_open(&drawn, &recipe);
        recipe.create = create_unwritten;
        tiny_open(&restored, &recipe);
        check_unwritten(&restored);
        snapshot_check_same(&drawn, &restored, TENSOR_BUFFER, "the start");
        tiny_restore(&drawn, &restored);
        tiny_check_same(&drawn, &restored, "what was written");
        CHECK(tiny_train(&drawn, NULL, NULL) == 0 && tiny_train(&restored, NULL, NULL) == 0, "%s",
              error_message());
        tiny_check_same(&drawn, &restored, "training from what was written");
        tiny_close(&drawn);
        tiny_close(&restored);
    }
}

/* Copies a tensor that is larger than the staging buffer it passes through. */
static void large_tensors_pass_in_pieces(void) {
    Tiny cpu, device;
    Recipe recipe = {.spec = "gpt:layers=1,width=64,heads=2,context=2,vocabulary=16500"};
    tiny_open(&cpu, &recipe);
    recipe.create = stage_cuda_create;
    tiny_open(&device, &recipe);
    CHECK(cpu.model->param[0].count > STAGING_BYTES / sizeof(float), "it is small");
    tiny_check_same(&cpu, &device, "the start");
    size_t count;
    real *data = tiny_read(&cpu, TENSOR_PARAMETER, 0, &count);
    for (size_t i = 0; i < count; i++) data[i] = (real)i;
    CHECK(engine_write(cpu.engine, TENSOR_PARAMETER, 0, data) == 0 &&
              engine_write(device.engine, TENSOR_PARAMETER, 0, data) == 0,
          "%s", error_message());
    tiny_check_same(&cpu, &device, "written and read back");
    free(data);
    tiny_close(&cpu);
    tiny_close(&device);
}

/* Block outputs that are written and read back are those that the value type holds. */
static void values_come_back(const void *spec) {
    for (Precision precision = PRECISION_FP32; precision < PRECISIONS; precision++) {
        Tiny tiny;
        Recipe recipe = {.spec = spec, .create = stage_cuda_create, .precision = precision};
        tiny_open(&tiny, &recipe);
        Batch batch = tiny_batch(&tiny, 3);
        Stage *stage = tiny.stage;
        stage_begin(stage, &batch, MODE_EVALUATE);
        for (int b = 0; b < tiny.model->blocks; b++) {
            size_t count = stage_read(stage, TENSOR_VALUE, b, NULL);
            size_t expected = value_count(tiny.model, tiny.model->block[b].out, 3);
            CHECK(count == expected, "%zu numbers of block %d, not %zu", count, b, expected);
            real *data = malloc(2 * count * sizeof *data);
            if (!data) abort();
            for (size_t i = 0; i < count; i++) data[i] = (real)((int)(i % 255) - 127);
            CHECK(stage_write(stage, TENSOR_VALUE, b, data) == 0, "%s", error_message());
            CHECK(stage_read(stage, TENSOR_VALUE, b, data + count) == count, "%s", error_message());
            CHECK(memcmp(data, data + count, count * sizeof *data) == 0, "block %d differs", b);
            free(data);
        }
        batch_free(&batch);
        tiny_close(&tiny);
    }
}

/* ---- a step that fails ---- */

static void check_failed_step(const Recipe *recipe, int warm_steps) {
    Tiny tiny;
    Loss loss;
    tiny_open(&tiny, recipe);
    tiny_activate(&tiny, 0);
    Batch batch = tiny_batch(&tiny, 4);
    for (int i = 0; i < warm_steps; i++) /* enough for the step to be captured, or replayed */
        CHECK(engine_step(tiny.engine, &batch, 0.01, &loss) == 0, "%s", error_message());
    int param = tiny.model->block[tiny.model->blocks - 1].first_param;
    real before = tiny_set_first(&tiny, param, (real)NAN);
    enum { ROLES = 4 };
    static const TensorRole roles[ROLES] = {TENSOR_PARAMETER, TENSOR_BUFFER, TENSOR_STATE0,
                                            TENSOR_STATE1};
    Snapshot was[ROLES];
    for (int r = 0; r < ROLES; r++) was[r] = snapshot_take(&tiny, roles[r]);
    uint64_t t = engine_optimizer_step(tiny.engine, 0);
    CHECK(engine_step(tiny.engine, &batch, 0.01, &loss) == -1, "loss %g", loss.loss_sum);
    CHECK(strstr(error_message(), "loss is"), "\"%s\"", error_message());
    CHECK(engine_optimizer_step(tiny.engine, 0) == t, "the failed step counts");
    for (int r = 0; r < ROLES; r++) {
        Snapshot is = snapshot_take(&tiny, roles[r]);
        CHECK(memcmp(was[r].number, is.number, is.begin[is.tensors] * sizeof(real)) == 0,
              "%s: tensors of role %d have changed", tiny.model->name, (int)roles[r]);
        snapshot_free(&is);
        snapshot_free(&was[r]);
    }
    tiny_set_first(&tiny, param, before);
    CHECK(engine_step(tiny.engine, &batch, 0.01, &loss) == 0, "%s", error_message());
    batch_free(&batch);
    tiny_close(&tiny);
}

static void bad_loss_changes_nothing(const void *spec) {
    for (int way = 0; way < 8; way++)
        check_failed_step(&(Recipe){.spec = spec,
                                    .create = stage_cuda_create,
                                    .submodels = 1,
                                    .micro_batches = 1 + (way & 1),
                                    .precision = way & 2 ? PRECISION_BF16 : PRECISION_FP32,
                                    .optimizer = way % 3 ? OPTIMIZER_ADAM : OPTIMIZER_MUON,
                                    .clip = way & 1 ? 0.5 : 0,
                                    .offload = way & 4},
                          way % 4);
}

/* ---- times ---- */

/* Each block that works has a time, the others have none, and the sum is less than the time that
 * passed. */
static void blocks_are_charged(const void *spec) {
    BlockTimes times[16];
    Tiny tiny;
    Loss loss;
    struct timespec start, end;
    tiny_open(&tiny, &(Recipe){.spec = spec, .create = stage_cuda_create, .times = times});
    tiny_activate(&tiny, 1);
    Batch batch = tiny_batch(&tiny, 4);
    clock_gettime(CLOCK_MONOTONIC, &start);
    CHECK(engine_step(tiny.engine, &batch, 0.01, &loss) == 0, "%s", error_message());
    clock_gettime(CLOCK_MONOTONIC, &end);
    double sum = 0, passed = 1e3 * (double)(end.tv_sec - start.tv_sec) +
                             1e-6 * (double)(end.tv_nsec - start.tv_nsec);
    bool below = true;
    for (int b = 0; b < tiny.model->blocks; b++) {
        below &= tiny.settings.partition.of_block[b] != 1;
        CHECK(times[b].ms[PASS_FORWARD] > 0, "%s: forward %g ms", tiny.model->block[b].name,
              times[b].ms[PASS_FORWARD]);
        CHECK(below == !(times[b].ms[PASS_INPUT_GRADIENT] > 0), "%s: input gradient %g ms",
              tiny.model->block[b].name, times[b].ms[PASS_INPUT_GRADIENT]);
        sum += times[b].ms[PASS_FORWARD] + times[b].ms[PASS_INPUT_GRADIENT] +
               times[b].ms[PASS_WEIGHT_GRADIENT];
    }
    CHECK(sum <= passed, "%g ms charged, %g passed", sum, passed);
    batch_free(&batch);
    tiny_close(&tiny);
}

void test_stage_memory(void) {
    for (int i = 0; tiny_models[i]; i++) {
        /* One model of images and one of tokens; on the stand-ins for libraries all others behave
         * alike. */
        if (device_stands_in() && i % 3) continue;
        RUN_ROW("counted is planned", counted_is_planned, tiny_models[i]);
        RUN_ROW("tensors", tensors_exist_as_in_the_oracle, tiny_models[i]);
        RUN_ROW("transfers", to_the_device_and_back, tiny_models[i]);
        RUN_ROW("start", starts_are_the_same, tiny_models[i]);
        RUN_ROW("no start", a_start_may_be_left_out, tiny_models[i]);
        RUN_ROW("values", values_come_back, tiny_models[i]);
        RUN_ROW("bad loss", bad_loss_changes_nothing, tiny_models[i]);
        RUN_ROW("times", blocks_are_charged, tiny_models[i]);
    }
    RUN(a_refusal_names_role_and_bytes);
    RUN(large_tensors_pass_in_pieces);
}
