/* Streams that are late (cuda/simt/late.h), and stages and pipelines that use them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../cuda/message.h"
#include "../../cuda/simt/control.h"
#include "../../cuda/stage/stage_cuda.h"
#include "../../ref/base/error.h"
#include "../cuda/device_array.h"
#include "../cuda/drift.h"
#include "../dist/pipeline_cases.h"
#include "../test.h"

#ifdef HAS_NCCL
void test_transport_nccl(void);
#endif

enum { SEED = 20261122, SEEDS = 2 };

/* ---- the queues themselves ---- */

typedef struct {
    Stream first, second;
    float *device, *pinned, *back;
} Late;

static Late late_open(void) {
    return (Late){stream_create(), stream_create(), device_alloc(sizeof(float)),
                  pinned_alloc(sizeof(float)), pinned_alloc(sizeof(float))};
}
static void late_close(Late *l) {
    stream_free(l->first);
    stream_free(l->second);
    device_free(l->device);
    pinned_free(l->pinned);
    pinned_free(l->back);
}

static void is_late(void) {
    Late l = late_open();
    *l.pinned = 7;
    copy_to_device(l.first, l.device, l.pinned, sizeof(float));
    copy_to_host(l.first, l.back, l.device, sizeof(float));
    CHECK(isnan(*l.device) && isnan(*l.back), "%g and %g: not late", (double)*l.device,
          (double)*l.back);
    CHECK(!device_wait(l.first) && *l.back == 7, "%g: %s", (double)*l.back, error_message());
    late_close(&l);
}

static void sees_memory_that_changed(void) {
    Late l = late_open();
    *l.pinned = 7;
    copy_to_device(l.first, l.device, l.pinned, sizeof(float));
    *l.pinned = 8;
    CHECK(device_wait(l.first), "memory that changed is not reported");
    copy_to_device(l.first, l.device, l.pinned, sizeof(float));
    pinned_free(l.pinned);
    l.pinned = NULL;
    CHECK(device_wait(l.first), "memory that was freed is not reported");
    late_close(&l);
}

/* Without the event the second stream would usually copy what has not been written yet. */
static void waits_for_events(void) {
    Event event = event_create(false);
    int early = 0;
    for (int i = 0; i < 40; i++) {
        Late l = late_open();
        bool waits = i % 2;
        *l.pinned = 7;
        copy_to_device(l.first, l.device, l.pinned, sizeof(float));
        event_record(event, l.first);
        if (waits) stream_wait_event(l.second, event);
        copy_to_host(l.second, l.back, l.device, sizeof(float));
        CHECK(!device_wait(l.second), "%s", error_message());
        CHECK(!waits || *l.back == 7, "%g behind the event", (double)*l.back);
        early += isnan(*l.back);
        CHECK(!event_wait(event) && event_over(event) == 1, "%s", error_message());
        late_close(&l);
    }
    CHECK(early >= 5, "%d of 20 were early without an event", early);
    event_free(event);
}

static void asking_comes_to_an_end(void) {
    Late l = late_open();
    Event event = event_create(false);
    int asked = 0;
    *l.pinned = 7;
    for (int i = 0; i < 10; i++) copy_to_device(l.first, l.device, l.pinned, sizeof(float));
    event_record(event, l.first);
    CHECK(event_over(event) == 0, "over at once");
    while (asked < 100 && event_over(event) == 0) asked++;
    CHECK(asked < 100 && *l.device == 7, "asked %d times", asked);
    CHECK(!device_wait(l.first), "%s", error_message());
    event_free(event);
    late_close(&l);
}

/* ---- what stands on them: a training has the bits that it has over streams that are not late ----
 */

#define SMALL_GPT "gpt:layers=1,width=8,heads=2,context=4,vocabulary=7"
#define SMALL_RESNET "resnet:depth=8,width=2,size=4,classes=3"

typedef struct {
    const char *name;
    Recipe recipe;
} Row;

static const Row rows[] = {
    {"steps, clipped", {.spec = SMALL_GPT, .optimizer = OPTIMIZER_ADAM, .clip = 0.5}},
    {"steps, batch norm", {.spec = SMALL_RESNET, .precision = PRECISION_BF16}},
    {"parts", {.spec = SMALL_GPT, .micro_batches = 3, .batch = 5, .optimizer = OPTIMIZER_ADAM}},
    {"kept state", {.spec = SMALL_GPT, .keep_state = true, .optimizer = OPTIMIZER_ADAMW}},
    /* An epoch has two steps, so the third of a phase reads from the cache. */
    {"cached prefix",
     {.spec = SMALL_GPT, .samples = 8, .rule = {.every = 3}, .cache_device_bytes = 1 << 20}},
    {"cached in both",
     {.spec = SMALL_GPT,
      .samples = 8,
      .rule = {.every = 3},
      .cache_device_bytes = 1 << 8,
      .cache_bytes = 1 << 20}},
    {"offload", {.spec = SMALL_GPT, .offload = true, .submodels = 1, .optimizer = OPTIMIZER_ADAMW}},
    {"offload, bf16",
     {.spec = SMALL_GPT,
      .offload = true,
      .submodels = 1,
      .precision = PRECISION_BF16,
      .optimizer = OPTIMIZER_ADAMW}},
    {"offload, clipped, parts",
     {.spec = SMALL_GPT,
      .offload = true,
      .submodels = 1,
      .clip = 0.1,
      .batch = 4,
      .micro_batches = 2,
      .optimizer = OPTIMIZER_ADAM}},
    {"offload, submodels",
     {.spec = SMALL_RESNET,
      .offload = true,
      .keep_state = true,
      .precision = PRECISION_BF16,
      .optimizer = OPTIMIZER_ADAM}},
};

/* A curve has the losses too: they are copied back from the device. */
static void train(Tiny *tiny, const Recipe *recipe, uint64_t seed, TinyCurve *curve) {
    simt_set_late(seed);
    *curve = (TinyCurve){0};
    tiny_open(tiny, recipe);
    CHECK(tiny_train(tiny, tiny_note_loss, curve) == 0, "seed %d: %s", (int)seed, error_message());
}

static void the_same_bits(const void *data) {
    const Row *row = data;
    BlockTimes times[16];
    for (uint64_t seed = SEED; seed < SEED + SEEDS; seed++) {
        Recipe recipe = row->recipe;
        TinyCurve first, second;
        Tiny at_once, late;
        recipe.create = stage_cuda_create;
        train(&at_once, &recipe, 0, &first);
        /* The second training runs call by call, unless it has a cache. */
        if (seed > SEED && !recipe.cache_device_bytes) recipe.times = times;
        train(&late, &recipe, seed, &second);
        CHECK(first.steps == second.steps && !memcmp(first.loss, second.loss, sizeof first.loss),
              "the losses differ, seed %d", (int)seed);
        tiny_check_same(&at_once, &late, row->name);
        tiny_close(&late);
        simt_set_late(0);
        tiny_close(&at_once);
    }
}

static void a_pipeline(const void *row) {
    static const StageKind kind = {
        .name = "late", .create = stage_cuda_create, .message_free = message_free};
    simt_set_late(SEED);
    pipeline_check_same(row, &kind);
    simt_set_late(0);
}

/* Calls that an engine makes between steps: norms and squares of gradients, values, copies. */
static void asked_in_between(void) {
    Recipe recipe = {.spec = SMALL_GPT, .create = stage_cuda_create, .steps = 3};
    Tiny tiny;
    simt_set_late(SEED);
    tiny_trained(&tiny, &recipe);
    Snapshot once = snapshot_take(&tiny, TENSOR_PARAMETER);
    Snapshot again = snapshot_take(&tiny, TENSOR_PARAMETER);
    size_t count = once.begin[once.tensors];
    CHECK(!memcmp(once.number, again.number, count * sizeof(real)), "parameters differ");
    for (size_t i = 0; i < count; i++)
        if (!CHECK(isfinite(once.number[i]), "number %zu is not here yet", i)) break;
    snapshot_free(&once);
    snapshot_free(&again);
    tiny_close(&tiny);
    simt_set_late(0);
}

/* Runs one step call by call, up to its gradients. Nothing waits. */
static void put_step(const Tiny *tiny, const Batch *batch) {
    Stage *stage = tiny->stage;
    int blocks = tiny->model->blocks;
    stage_begin(stage, batch, MODE_TRAIN);
    for (int b = 0; b < blocks; b++) stage_forward(stage, b);
    Loss loss;
    CHECK(stage_loss(stage, 1, &loss) == 0, "%s", error_message());
    for (int b = blocks - 1; b >= 0; b--) {
        stage_input_gradient(stage, b);
        stage_weight_gradient(stage, b);
    }
}

static void updates_have_their_own_numbers(void) {
    Recipe recipe = {.spec = SMALL_GPT, .create = stage_cuda_create, .submodels = 1};
    Snapshot all[2];
    for (int late = 0; late < 2; late++) {
        Tiny tiny;
        simt_set_late(late ? SEED : 0);
        tiny_open(&tiny, &recipe);
        tiny_activate(&tiny, 0);
        Batch batch = tiny_batch(&tiny, 2);
        put_step(&tiny, &batch);
        for (int i = 0; i < 5; i++) stage_update(tiny.stage, 0.01 * (i + 1), 1);
        all[late] = snapshot_take(&tiny, TENSOR_PARAMETER);
        batch_free(&batch);
        tiny_close(&tiny);
    }
    simt_set_late(0);
    CHECK(!memcmp(all[0].number, all[1].number, all[0].begin[all[0].tensors] * sizeof(real)),
          "an update had the numbers of another");
    for (int late = 0; late < 2; late++) snapshot_free(&all[late]);
}

static void is_freed_while_it_works(void) {
    for (int offload = 0; offload < 2; offload++) {
        Recipe recipe = {
            .spec = SMALL_GPT, .create = stage_cuda_create, .submodels = 1, .offload = offload};
        Tiny tiny;
        simt_set_late(SEED);
        tiny_open(&tiny, &recipe);
        tiny_activate(&tiny, 0);
        Batch batch = tiny_batch(&tiny, 2);
        put_step(&tiny, &batch);
        stage_update(tiny.stage, 0.01, 1);
        put_step(&tiny, &batch);
        batch_free(&batch);
        tiny_close(&tiny);
        simt_set_late(0);
        device_test_wait();
    }
}

/* Waits for the stage, and CHECKs that it reports no error. */
static void check_stage(const Tiny *tiny) {
    size_t count = tiny->model->param[0].count;
    real *data = malloc(count * sizeof *data);
    CHECK(stage_read(tiny->stage, TENSOR_PARAMETER, 0, data) == count, "%s", error_message());
    free(data);
}

/* Writes the slots a second time, before their first values have been read. */
static void slots_are_fed_twice(void) {
    static const int slots[] = {0, 1, 2, 3};
    Recipe recipe = {.spec = SMALL_GPT, .create = stage_cuda_create};
    Tiny tiny;
    simt_set_late(SEED);
    tiny_open(&tiny, &recipe);
    Stage *stage = tiny.stage;
    Batch batch = tiny_batch(&tiny, 2);
    size_t width = shape_count(tiny.model->value[tiny.model->block[0].out].shape);
    CHECK(stage_cache_reserve(stage, width, 4 * width * sizeof(float)) == 4, "no room for 4");
    stage_begin(stage, &batch, MODE_EVALUATE);
    stage_forward(stage, 0);
    stage_cache_put(stage, 0, slots, 2);
    stage_cache_put(stage, 0, slots + 2, 2);
    check_stage(&tiny);
    batch_free(&batch);
    tiny_close(&tiny);
    simt_set_late(0);
    device_test_wait();
}

/* The loss of a batch is computed twice, and gradients are read after the step has failed. */
static void a_step_is_given_up(void) {
    for (int offload = 0; offload < 2; offload++) {
        Recipe recipe = {.spec = SMALL_GPT,
                         .create = stage_cuda_create,
                         .submodels = 1,
                         .steps = 1,
                         .offload = offload};
        Tiny tiny;
        simt_set_late(SEED);
        tiny_open(&tiny, &recipe);
        tiny_activate(&tiny, 0);
        Batch batch = tiny_batch(&tiny, 2);
        put_step(&tiny, &batch);
        Loss loss;
        CHECK(stage_loss(tiny.stage, 0.5, &loss) == 0, "%s", error_message());
        batch_free(&batch);
        check_stage(&tiny);
        tiny_set_first(&tiny, 0, NAN);
        CHECK(tiny_train(&tiny, NULL, NULL) != 0, "a loss that is no number is taken");
        tiny_close(&tiny);
        simt_set_late(0);
        device_test_wait();
    }
}

static void times_are_of_what_was_done(void) {
    BlockTimes times[16];
    Recipe recipe = {.spec = SMALL_GPT, .create = stage_cuda_create, .times = times, .steps = 3};
    Tiny tiny;
    simt_set_late(SEED);
    tiny_trained(&tiny, &recipe);
    for (int b = 0; b < tiny.model->blocks; b++)
        CHECK(times[b].ms[PASS_FORWARD] > 0 && isfinite(times[b].ms[PASS_FORWARD]),
              "block %d: %g ms", b, times[b].ms[PASS_FORWARD]);
    tiny_close(&tiny);
    simt_set_late(0);
}

void test_late(void);
void test_late(void) {
    CHECK(device_open() == 0, "%s", error_message());
    simt_set_late(SEED);
    RUN(is_late);
    RUN(sees_memory_that_changed);
    RUN(waits_for_events);
    RUN(asking_comes_to_an_end);
    simt_set_late(0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        RUN_ROW(rows[i].name, the_same_bits, &rows[i]);
    RUN(asked_in_between);
    RUN(updates_have_their_own_numbers);
    RUN(is_freed_while_it_works);
    RUN(slots_are_fed_twice);
    RUN(a_step_is_given_up);
    RUN(times_are_of_what_was_done);
    RUN_ROW(pipeline_rows[1].name, a_pipeline, &pipeline_rows[1]);
}

#ifdef HAS_NCCL
void test_late_nccl(void);
void test_late_nccl(void) {
    simt_set_late(SEED);
    test_transport_nccl();
    simt_set_late(0);
}
#endif
