/* Pipelines of stages on one device, each a thread with a stream of its own. They have the bits of
 * one stage in every precision, whether messages stay on the device or pass through the host, and
 * the bytes that were planned. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../cuda/message.h"
#include "../../cuda/stage/stage_cuda.h"
#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "../dist/pipeline_cases.h"
#include "../test.h"
#include "device_case.h"
#include "planned.h"

static const StageKind kinds[] = {
    {"fp32, messages", stage_cuda_create, PRECISION_FP32, message_free, NULL, false},
    {"fp32, host data", stage_cuda_create, PRECISION_FP32, NULL, NULL, false},
    {"tf32, messages", stage_cuda_create, PRECISION_TF32, message_free, NULL, false},
    {"bf16, messages", stage_cuda_create, PRECISION_BF16, message_free, NULL, false},
    {"bf16, host data", stage_cuda_create, PRECISION_BF16, NULL, NULL, false},
};
static const StageKind *const end_of_kinds = kinds + sizeof kinds / sizeof *kinds;

/* Each row runs with the first kind and with one of the others in turn; on a slow device with one
 * kind in turn. The rows vary the pipeline, which tests/dist/test_pipeline.c tests with stages on
 * the CPU. */
static void same_as_one_stage(const void *data) {
    const PipelineRow *row = data;
    long number = row - pipeline_rows, all = end_of_kinds - kinds;
    if (device_is_slow()) {
        StageKind kind = kinds[number % all];
        kind.alone = device_is_watched();
        pipeline_check_same(row, &kind);
        return;
    }
    pipeline_check_same(row, &kinds[0]);
    pipeline_check_same(row, &kinds[1 + number % (all - 1)]);
}

static void slots_are_not_reused_too_early(const void *ranks) {
    pipeline_check_slots(*(const int *)ranks, &kinds[0]);
}

/* ---- slots ---- */

/* Computes both gradients of one micro-batch, from the last block down. */
static void go_back(Stage *stage, int blocks) {
    for (int b = blocks - 1; b >= 0; b--) {
        stage_input_gradient(stage, b);
        stage_weight_gradient(stage, b);
    }
}

/* Returns the gradient of the upper blocks for a micro-batch. With `crossed` the next micro-batch
 * enters the lower blocks before the backward pass; they have a slot for it and the upper ones have
 * none. */
static real *upper_gradient(const Tiny *tiny, int upper, bool crossed, size_t *count) {
    bool local[16], active[16];
    int slots[16], blocks = tiny->model->blocks;
    for (int b = 0; b < blocks; b++) local[b] = active[b] = true, slots[b] = b < upper ? 2 : 1;
    StageSettings settings = tiny->stage->settings;
    settings.local = local;
    settings.in_flight = slots;
    Stage *stage = stage_cuda_create(tiny->model, settings);
    if (!stage || stage_activate(stage, active)) abort();
    Batch batch = tiny_batch(tiny, 4);
    Batch part[2] = {batch_slice(&batch, tiny->model, 0, 2),
                     batch_slice(&batch, tiny->model, 2, 4)};
    stage_select(stage, 0);
    stage_begin(stage, &part[0], MODE_TRAIN);
    for (int b = 0; b < blocks; b++) stage_forward(stage, b);
    Loss loss;
    CHECK(stage_loss(stage, 1, &loss) == 0, "%s", error_message());
    if (crossed) {
        stage_select(stage, 1);
        stage_begin(stage, &part[1], MODE_TRAIN);
        for (int b = 0; b < upper; b++) stage_forward(stage, b);
        stage_select(stage, 0);
        stage_begin(stage, &part[0], MODE_TRAIN);
    }
    go_back(stage, blocks);
    int param = tiny->model->block[upper].first_param;
    *count = stage_read(stage, TENSOR_GRADIENT, param, NULL);
    real *gradient = malloc(*count * sizeof *gradient);
    if (!gradient || stage_read(stage, TENSOR_GRADIENT, param, gradient) != *count) abort();
    batch_free(&batch);
    stage_free(stage);
    return gradient;
}

static void slots_are_left_alone(const void *spec) {
    Tiny tiny;
    tiny_open(&tiny, &(Recipe){.spec = spec, .create = stage_cuda_create, .batch = 2});
    for (int upper = 1; upper < tiny.model->blocks; upper++) {
        size_t a, b;
        real *alone = upper_gradient(&tiny, upper, false, &a);
        real *crossed = upper_gradient(&tiny, upper, true, &b);
        CHECK(a == b && a > 0 && memcmp(alone, crossed, a * sizeof *alone) == 0,
              "%s: from %s on, gradients are another micro-batch's", tiny.model->name,
              tiny.model->block[upper].name);
        free(alone);
        free(crossed);
    }
    tiny_close(&tiny);
}

/* ---- tied embedding, failures ---- */

static void tied_to_rounding(const void *ranks) {
    pipeline_check_tied(*(const int *)ranks, SCHEDULE_1F1B, &kinds[0]);
    pipeline_check_tied(*(const int *)ranks, SCHEDULE_ZERO_BUBBLE, &kinds[1]);
}

static void frozen_tied_is_exact(const void *kind) { pipeline_check_frozen_tied(kind); }

static Stage *create_unwritten(const Model *model, StageSettings settings) {
    settings.skip_init = true;
    return stage_cuda_create(model, settings);
}

/* Stages that draw no initial values get them written, and so does the copy of a tied embedding
 * that another rank owns: a training has the bits of one stage. */
static void a_tied_copy_is_written(const void *data) {
    const StageKind *kind = data;
    Recipe recipe = {.spec = "gpt:layers=4,width=8,heads=2,context=6,vocabulary=11",
                     .create = kind->create,
                     .precision = kind->precision,
                     .micro_batches = 2,
                     .steps = 2,
                     .order = ORDER_DESCENDING};
    const PipelineRecipe how = {.placement = PLACEMENT_PLAIN,
                                .ranks = 3,
                                .submodels = 1,
                                .settings = {.micro_batches = 2},
                                .message_free = kind->message_free};
    Tiny one;
    Pipeline many;
    tiny_open(&one, &recipe);
    recipe.create = create_unwritten;
    pipeline_open(&many, &recipe, &how);
    tiny_restore(&one, &many.tiny);
    tiny_check_same(&one, &many.tiny, "what was written");
    CHECK(tiny_train(&one, NULL, NULL) == 0 && tiny_train(&many.tiny, NULL, NULL) == 0, "%s",
          error_message());
    tiny_check_same(&one, &many.tiny, "training from what was written");
    pipeline_close(&many);
    tiny_close(&one);
}

static void bad_loss_changes_nothing(const void *kind) { pipeline_check_bad_loss(kind); }

static void inference_changes_nothing(const void *kind) {
    pipeline_check_infer(kind, 12);
    if (device_products_are_by_row()) pipeline_check_infer(kind, 4);
}

static void offload_is_refused(void) {
    bool local[64] = {true};
    Model *m = model_create("gpt:layers=1,width=8,heads=2,context=4,vocabulary=5");
    StageSettings settings = {.batch = 1, .local = local, .offload = true};
    CHECK(m && !stage_cuda_create(m, settings), "a stage");
    CHECK(strstr(error_message(), "offload"), "\"%s\"", error_message());
    model_free(m);
}

/* Without ranks and with one or two, of which another one than rank 0 may hold the tensor. */
static void a_failed_copy_is_no_absent_tensor(void) {
    Recipe recipe = {.spec = tiny_models_without_batchnorm[1], .create = stage_cuda_create};
    for (int ranks = 0; ranks < 3; ranks++) {
        const PipelineRecipe how = pipeline_plain(ranks, 1);
        Pipeline p = {0};
        if (ranks)
            pipeline_open(&p, &recipe, &how);
        else
            tiny_open(&p.tiny, &recipe);
        int last = p.tiny.model->params - 1;
        size_t count = p.tiny.model->param[last].count;
        real *data = malloc(count * sizeof *data);
        CHECK(engine_read(p.tiny.engine, TENSOR_PARAMETER, last, data) == count, "%s",
              error_message());
        device_note("planted: a lost copy");
        CHECK(engine_read(p.tiny.engine, TENSOR_PARAMETER, last, data) == READ_FAILED,
              "nothing failed");
        CHECK(strstr(error_message(), "planted: a lost copy"), "\"%s\"", error_message());
        free(data);
        if (ranks)
            pipeline_close(&p);
        else
            tiny_close(&p.tiny);
    }
}

/* ---- memory ---- */

/* Compares the bytes between two calls of the engine, when its stages are idle. */
static void check_bytes(const Pipeline *p, int rank, const bool *active) {
    const Stage *stage = p->stage[rank];
    char who[450];
    size_t host[MEM_ROLES];
    CHECK(stage->settings.deferred == (p->how.settings.kind == SCHEDULE_ZERO_BUBBLE),
          "the stage does not defer");
    snprintf(who, sizeof who, "%s, rank %d", p->tiny.model->name, rank);
    check_planned(host, stage, &stage->memory, active, who);
}

static void counted_is_planned(const void *spec) {
    for (int way = 0; way < 16; way++) {
        Recipe recipe = {.spec = spec,
                         .create = stage_cuda_create,
                         .precision = way & 1 ? PRECISION_BF16 : PRECISION_FP32,
                         .recompute = way & 2,
                         .batch = 8, /* batch norm needs two samples in a part */
                         .micro_batches = 4,
                         .optimizer = OPTIMIZER_ADAM};
        PipelineRecipe how = {.placement = way & 4 ? PLACEMENT_VIRTUAL : PLACEMENT_PLAIN,
                              .ranks = way & 4 ? 2 : 3,
                              .submodels = way & 4 ? 2 : 1,
                              .settings = {.micro_batches = 4,
                                           .kind = way & 8 ? SCHEDULE_ZERO_BUBBLE : SCHEDULE_1F1B}};
        Pipeline p;
        bool active[64];
        pipeline_open(&p, &recipe, &how);
        for (int submodel = 0; submodel < 3; submodel++) {
            tiny_activate(&p.tiny, submodel);
            partition_active(&p.tiny.settings.partition, p.tiny.model, submodel, active);
            engine_memory(p.tiny.engine);
            for (int r = 0; r < how.ranks; r++) check_bytes(&p, r, active);
        }
        pipeline_close(&p);
    }
}

/* ---- messages ---- */

/* Messages are freed while copies may still be running; the next message in the same memory waits
 * for them on the device. */
static void message_memory_is_reused(void) {
    enum { COUNT = 1000, ROUNDS = 50 };
    static float from[COUNT], to[ROUNDS][COUNT];
    Stream streams[2];
    message_users_add();
    CHECK(device_open() == 0, "%s", error_message());
    for (int k = 0; k < 2; k++) streams[k] = stream_create();
    float *source = device_alloc(sizeof from);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++) from[i] = (float)(round * COUNT + i);
        Stream stream = streams[round % 2];
        copy_to_device(stream, source, from, sizeof from);
        DeviceMessage *m = message_new(sizeof from);
        if (!CHECK(m, "%s", error_message())) return;
        CHECK(m->bytes == sizeof from, "%zu bytes", m->bytes);
        stream_wait_event(stream, m->ready);
        copy_on_device(stream, m->data, source, sizeof from);
        copy_to_host(stream, to[round], m->data, sizeof from);
        event_record(m->ready, stream);
        message_free(m);
        CHECK(device_wait(stream) == 0, "%s", error_message());
    }
    for (int i = 0; i < ROUNDS * COUNT; i++)
        if (!CHECK(to[i / COUNT][i % COUNT] == (float)i, "number %d is %g", i,
                   (double)to[i / COUNT][i % COUNT]))
            break;
    DeviceMessage *small = message_new(4), *left = message_new(sizeof from);
    CHECK(small && left && small->data != left->data, "one place for two");
    message_free(small);
    message_users_remove();
    message_free(left); /* as by a transport that is freed after its last user */
    device_free(source);
    for (int k = 0; k < 2; k++) stream_free(streams[k]);
}

void test_stage_pipeline(void) {
    static const int two = 2, four = 4;
    /* On a slow device every other row runs, since the stage is the same in all. */
    for (const PipelineRow *row = pipeline_rows; row->name; row++)
        if (!device_is_slow() || (row - pipeline_rows) % 2)
            RUN_ROW(row->name, same_as_one_stage, row);
    for (int i = 0; tiny_models[i]; i++)
        if (!device_stands_in() || i % 3 == 0)
            RUN_ROW("slots", slots_are_left_alone, tiny_models[i]);
    if (!device_is_watched()) RUN_ROW("8 parts, 2 ranks", slots_are_not_reused_too_early, &two);
    RUN_ROW("8 parts, 4 ranks", slots_are_not_reused_too_early, &four);
    RUN_ROW("tied embedding, 2 ranks", tied_to_rounding, &two);
    RUN_ROW("tied embedding, 4 ranks", tied_to_rounding, &four);
    /* Slots are tested with messages and with host data. The kernels of other precisions have run
     * above. */
    const StageKind *end = device_is_slow() ? kinds + 2 : end_of_kinds;
    for (const StageKind *kind = kinds; kind < end; kind++) {
        RUN_ROW("frozen tied embedding", frozen_tied_is_exact, kind);
        RUN_ROW("tied embedding, no start", a_tied_copy_is_written, kind);
        RUN_ROW("bad loss", bad_loss_changes_nothing, kind);
        RUN_ROW("pre-inference", inference_changes_nothing, kind);
    }
    RUN(offload_is_refused);
    RUN(a_failed_copy_is_no_absent_tensor);
    RUN(message_memory_is_reused);
    for (int i = 0; tiny_models[i]; i++)
        if (!device_stands_in() || i % 3 == 0)
            RUN_ROW("counted is planned", counted_is_planned, tiny_models[i]);
}
