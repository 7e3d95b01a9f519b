/* Images that stay on the device have the bits that the data set's fetch gives, in a kernel and in
 * a training. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../cuda/stage/plan.h"
#include "../../cuda/stage/stage_cuda.h"
#include "../../cuda/stage/stage_internal.h"
#include "../../data/images.h"
#include "../../ref/blocks/models.h"
#include "../test.h"
#include "device_case.h"
#include "drift.h"

typedef struct {
    const char *name;
    int samples, label_bytes, n;
    bool augment;
    uint64_t position;
} Row;

/* Records as in CIFAR-10 and CIFAR-100, in numbers that are no multiple of a thread block, and a
 * position beyond 32 bits. */
static const Row rows[] = {
    {"as they are", 5, 1, 3, false, 7},
    {"cropped and mirrored", 37, 1, 33, true, 0},
    {"behind two labels", 6, 2, 5, true, 0x100000003},
};

/* Creates random images. Of the label bytes before each one only the last counts. */
static Dataset *create(const Row *row) {
    Images drawn, images;
    if (synthetic_generate(&drawn, row->samples, SPLIT_TRAIN, 3)) abort();
    size_t from = 1 + IMAGE_BYTES, to = (size_t)row->label_bytes + IMAGE_BYTES;
    images = drawn;
    images.label_bytes = row->label_bytes;
    images.records = calloc((size_t)row->samples, to);
    if (!images.records) abort();
    for (size_t i = 0; i < (size_t)row->samples; i++)
        memcpy(images.records + i * to + to - from, drawn.records + i * from, from);
    free(drawn.records);
    Dataset *data =
        images_dataset(row->name, images, &synthetic_normalisation, row->augment, 11, 0);
    if (!data) abort();
    return data;
}

static void check_kernel(const Row *row, const Dataset *data, const Batch *batch,
                         Precision precision) {
    const size_t count = (size_t)row->n * IMAGE_BYTES, samples = (size_t)row->samples;
    const ImageBytes *bytes = data->bytes;
    Run run = {.stream = device_test_stream(), .precision = precision};
    unsigned char *planes = malloc(samples * IMAGE_BYTES);
    float *got = malloc(count * sizeof *got);
    if (!planes || !got) abort();
    for (size_t i = 0; i < samples; i++)
        memcpy(planes + i * IMAGE_BYTES, bytes->first + i * bytes->step, IMAGE_BYTES);
    void *on_device = device_put(planes, samples * IMAGE_BYTES);
    float *normal = device_put(bytes->normal, 3 * 256 * sizeof *normal);
    int *ids = device_put(batch->ids, (size_t)row->n * sizeof *ids);
    void *y = device_alloc(count * precision_bytes(precision));
    DeviceImages images = {on_device, normal, 32, 32, 3, bytes->pad, row->augment, bytes->seed};
    cuda_make_images(&run, y, ids, row->n, images, row->position);
    device_get_values(got, y, count, precision);
    for (size_t i = 0; i < count; i++) {
        float wanted = batch->images[i];
        if (precision == PRECISION_BF16) wanted = nearest_bf16(wanted);
        if (!CHECK(got[i] == wanted, "image %zu, number %zu is %.9g, not %.9g", i / IMAGE_BYTES,
                   i % IMAGE_BYTES, (double)got[i], (double)wanted))
            break;
    }
    void *device[] = {on_device, normal, ids, y};
    for (int i = 0; i < 4; i++) device_free(device[i]);
    free(planes);
    free(got);
}

static void makes_what_fetch_makes(const void *argument) {
    const Row *row = argument;
    if (!device_test_stream()) return;
    Dataset *data = create(row);
    Model *model = model_create("resnet:depth=8,width=4");
    Batch batch;
    if (!model || batch_reserve(&batch, model, row->n)) abort();
    for (int i = 0; i < row->n; i++) batch.ids[i] = (5 * i + 2) % row->samples;
    data->fetch(data, &batch, row->position);
    check_kernel(row, data, &batch, PRECISION_FP32);
    check_kernel(row, data, &batch, PRECISION_BF16);
    batch_free(&batch);
    model_free(model);
    dataset_free(data);
}

/* ---- trainings ---- */

static const Row train_row = {"train", 11, 1, 0, true, 0}, valid_row = {"valid", 7, 2, 0, false, 0};
static size_t room;

static Stage *create_with_room(const Model *model, StageSettings settings) {
    settings.image_bytes = room;
    return stage_cuda_create(model, settings);
}

/* Trains on images, which the stage keeps if there is space, and returns the loss on the second
 * set. */
static Loss train(Tiny *tiny, Dataset *valid, Precision precision) {
    const Recipe recipe = {.spec = "resnet:depth=8,width=4",
                           .create = create_with_room,
                           .precision = precision,
                           .micro_batches = 2,
                           .steps = 5};
    Loss loss = {0};
    Dataset *data = create(&train_row);
    room = valid ? dataset_resident_bytes(data) + dataset_resident_bytes(valid) : 0;
    tiny_open(tiny, &recipe);
    dataset_free(tiny->data);
    tiny->data = data;
    Dataset *own = valid ? valid : create(&valid_row);
    for (int i = 0; valid && i < 2; i++)
        CHECK(stage_keep_images(tiny->stage, i ? own : data) == 0, "%s", error_message());
    CHECK(tiny_train(tiny, NULL, NULL) == 0, "%s", error_message());
    Batch batch;
    if (batch_reserve(&batch, tiny->model, 4)) abort();
    for (int i = 0; i < 4; i++) batch.ids[i] = 6 - i;
    own->fetch(own, &batch, 0);
    CHECK(engine_evaluate(tiny->engine, &batch, &loss) == 0, "%s", error_message());
    batch_free(&batch);
    if (!valid) dataset_free(own);
    return loss;
}

static void trains_the_same(void) {
    if (!device_test_stream()) return;
    for (int bf16 = 0; bf16 < 2; bf16++) {
        const Precision precision = bf16 ? PRECISION_BF16 : PRECISION_FP32;
        Tiny sent, kept;
        Dataset *valid = create(&valid_row);
        Loss one = train(&sent, NULL, precision), two = train(&kept, valid, precision);
        tiny_check_same(&sent, &kept, "images kept");
        CHECK(one.loss_sum == two.loss_sum, "the loss is %.17g, not %.17g", two.loss_sum,
              one.loss_sum);
        tiny_close(&sent);
        tiny_close(&kept);
        dataset_free(valid);
    }
}

static void counts_and_refuses(void) {
    if (!device_test_stream()) return;
    Dataset *data = create(&train_row);
    size_t device[MEM_ROLES], host[MEM_ROLES];
    room = dataset_resident_bytes(data);
    CHECK(room == 3 * 256 * sizeof(float) + 11 * IMAGE_BYTES, "%zu bytes", room);
    Model *m = model_create("resnet:depth=8,width=4");
    Stage *stage = m ? create_with_room(m, (StageSettings){.batch = 2}) : NULL;
    if (!stage) abort();
    bool active[16] = {false};
    CHECK(cuda_memory_plan(device, host, m, &stage->settings, active) == 0, "%s", error_message());
    CHECK(stage->memory.current[MEM_WORKSPACE] == device[MEM_WORKSPACE],
          "%zu bytes of workspace, planned %zu", stage->memory.current[MEM_WORKSPACE],
          device[MEM_WORKSPACE]);
    CHECK(stage_keep_images(stage, data) == 0 && data->resident, "%s", error_message());
    Dataset *more = create(&valid_row);
    CHECK(stage_keep_images(stage, more) == -1 && !more->resident &&
              strstr(error_message(), "no room on the device for the images of valid"),
          "\"%s\"", error_message());
    stage_free(stage);
    model_free(m);
    dataset_free(data);
    dataset_free(more);
}

/* ---- what is copied in pieces ---- */

/* Writes the outputs of the first block of one batch. */
static void stem_outputs(real *y, const Tiny *tiny, const Dataset *data, Batch *batch) {
    Stage *stage = tiny->stage;
    data->fetch(data, batch, 0);
    stage_begin(stage, batch, MODE_EVALUATE);
    stage_forward(stage, 0);
    CHECK(stage_read(stage, TENSOR_VALUE, 0, y) > 0, "%s", error_message());
}

/* Keeps more images than fit into the staging buffer that they pass through. */
static void kept_in_pieces(void) {
    enum { SAMPLES = STAGING_BYTES / IMAGE_BYTES + 40 };
    const Row many = {"many", SAMPLES, 1, 0, false, 0};
    if (!device_test_stream()) return;
    Dataset *data = create(&many);
    Tiny tiny;
    room = dataset_resident_bytes(data);
    tiny_open(&tiny, &(Recipe){.spec = "resnet:depth=8,width=2", .create = create_with_room});
    Batch batch;
    size_t count = value_count(tiny.model, tiny.model->block[0].out, 3);
    real *y = malloc(2 * count * sizeof *y);
    if (!y || batch_reserve(&batch, tiny.model, 3)) abort();
    memcpy(batch.ids, (int[]){SAMPLES - 1, 7, SAMPLES - 40}, 3 * sizeof *batch.ids);
    stem_outputs(y, &tiny, data, &batch);
    CHECK(stage_keep_images(tiny.stage, data) == 0, "%s", error_message());
    stem_outputs(y + count, &tiny, data, &batch);
    CHECK(memcmp(y, y + count, count * sizeof *y) == 0, "images that are kept differ");
    free(y);
    batch_free(&batch);
    tiny_close(&tiny);
    dataset_free(data);
}

/* Sends a batch of more bytes than one thread copies at a time. */
static void sent_in_pieces(void) {
    enum { SAMPLES = (1 << 20) / (IMAGE_BYTES * 4) + 3 };
    if (!device_test_stream()) return;
    Tiny tiny;
    tiny_open(
        &tiny,
        &(Recipe){.spec = "resnet:depth=8,width=2", .create = stage_cuda_create, .batch = SAMPLES});
    CudaStage *stage = cuda_stage(tiny.stage);
    Batch batch = tiny_batch(&tiny, SAMPLES);
    size_t bytes = SAMPLES * IMAGE_BYTES * sizeof(float);
    float *got = pinned_alloc(bytes);
    if (!got) abort();
    batch_begin(tiny.stage, &batch, MODE_EVALUATE);
    batch_send_inputs(stage);
    copy_to_host(stage->run.stream, got, fixed_at(stage, stage->fixed.inputs), bytes);
    CHECK(device_wait(stage->run.stream) == 0, "%s", error_message());
    CHECK(memcmp(got, batch.images, bytes) == 0, "the images on the device differ");
    pinned_free(got);
    batch_free(&batch);
    tiny_close(&tiny);
}

void test_images(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        RUN_ROW(rows[i].name, makes_what_fetch_makes, &rows[i]);
    RUN(trains_the_same);
    RUN(counts_and_refuses);
    RUN(kept_in_pieces);
    RUN(sent_in_pieces);
}
