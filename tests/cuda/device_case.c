#include "device_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../test.h"

enum {
    BEFORE = 272, /* guard bytes; arrays are then aligned to 16 bytes and no more */
    BEHIND = 256,
    ALIGN = 256,
    GUARD_BYTE = 0xA5,
    COPIED =
        1 << 20 /* of a workspace; that of cuBLASLt has 32 MiB, of which each call would copy all */
};

const Precision value_types[VALUE_TYPES] = {PRECISION_FP32, PRECISION_BF16};

bool device_has_kernels(OpKind kind, Precision precision) {
    return precision != PRECISION_TF32 || kind == OP_LINEAR || kind == OP_CONV2D ||
           kind == OP_ATTENTION;
}

bool array_is_value(Array array) {
    switch (array) {
        case ARRAY_MEAN:
        case ARRAY_VARIANCE:
        case ARRAY_AUX:
        case ARRAY_DWEIGHT:
        case ARRAY_DBIAS:
            return false;
        default:
            return true;
    }
}

void device_case_round(CaseData *data, Precision precision) {
    if (precision != PRECISION_BF16) return;
    for (Array a = 0; a < ARRAY_Y; a++)
        for (size_t i = 0; array_is_value(a) && i < data->array[a].count; i++)
            data->array[a].data[i] = nearest_bf16(data->array[a].data[i]);
}

/* One allocation holds every array, then the tokens, then the workspace, each between guards. */
enum { TOKENS = ARRAYS, WORKSPACE, PLACES };
typedef struct {
    unsigned char *host, *device;
    size_t at[PLACES], bytes[PLACES], total;
    bool bf16;
    int align;
} Image;

/* Returns where the part of a workspace begins that is neither filled nor copied. */
static size_t copied_end(const Image *image) {
    const size_t bytes = image->bytes[WORKSPACE];
    return image->at[WORKSPACE] + (bytes < COPIED ? bytes : COPIED);
}

/* Returns where the guard behind the workspace begins. */
static size_t last_guard(const Image *image) {
    return image->at[WORKSPACE] + image->bytes[WORKSPACE];
}

/* The layout of an array on the device: rows with gaps between them, or one row. */
typedef struct {
    size_t rows, width, stride; /* in numbers */
} Rows;

static Rows rows_of(const CaseData *data, Array array, int align) {
    size_t count = data->array[array].count, c = (size_t)data->node.out_shape.c;
    bool logits = data->node.kind == OP_LINEAR && (array == ARRAY_Y || array == ARRAY_DY);
    if (!align || !logits) return (Rows){1, count, count};
    return (Rows){count / c, c, (c + (size_t)align - 1) / (size_t)align * (size_t)align};
}

static size_t place_bytes(const CaseData *data, How how, int place) {
    if (place == TOKENS)
        return data->tokens ? (size_t)data->row->n * shape_count(data->node.in_shape) * sizeof(int)
                            : 0;
    if (place == WORKSPACE) return cuda_node_workspace(&data->node, data->row->n, how.precision);
    Array array = (Array)place;
    size_t size = array_is_value(array) ? precision_bytes(how.precision) : sizeof(float);
    Rows rows = rows_of(data, array, how.align);
    return rows.rows * rows.stride * size;
}

static int image_create(Image *image, const CaseData *data, How how) {
    *image = (Image){.bf16 = how.precision == PRECISION_BF16, .align = how.align};
    for (int i = 0; i < PLACES; i++) {
        /* The workspace is aligned to 256 bytes. */
        image->at[i] = image->total + (i == WORKSPACE ? (size_t)ALIGN : (size_t)BEFORE);
        image->bytes[i] = place_bytes(data, how, i);
        size_t end = image->at[i] + image->bytes[i] + BEHIND;
        image->total = (end + ALIGN - 1) / ALIGN * ALIGN;
    }
    image->host = malloc(image->total);
    image->device = device_alloc(image->total);
    if (!image->host || !image->device) return -1;
    memset(image->host, GUARD_BYTE, image->at[WORKSPACE]);
    memset(image->host + image->at[WORKSPACE], 0xff, copied_end(image) - image->at[WORKSPACE]);
    memset(image->host + last_guard(image), GUARD_BYTE, image->total - last_guard(image));
    return 0;
}

static void image_free(Image *image) {
    free(image->host);
    device_free(image->device);
}

static void forbid_guards(const Image *image, bool forbid) {
    size_t end = 0;
    for (int i = 0; i < PLACES; i++) {
        device_forbid(image->device + end, image->at[i] - end, forbid);
        end = image->at[i] + image->bytes[i];
    }
    device_forbid(image->device + end, image->total - end, forbid);
}

static const char *place_name(int place) {
    return place < ARRAYS ? array_names[place] : place == TOKENS ? "tokens" : "the workspace";
}

static void check_guards(const Image *image) {
    size_t end = 0;
    for (int i = 0; i <= PLACES; i++) {
        size_t to = i < PLACES ? image->at[i] : image->total;
        while (end < to && image->host[end] == GUARD_BYTE) end++;
        CHECK(end == to, "something wrote %s %s", i < PLACES ? "before" : "behind",
              place_name(i < PLACES ? i : WORKSPACE));
        if (i < PLACES) end = image->at[i] + image->bytes[i];
    }
}

/* Copies an array between the case and the image. The gaps between rows are NaN and stay NaN. */
static void move_rows(const Image *image, const CaseData *data, Array array, bool up) {
    Rows r = rows_of(data, array, image->align);
    if (!r.width) return; /* the case has no such array */
    bool bf16 = image->bf16 && array_is_value(array);
    size_t size = bf16 ? 2 : sizeof(float), gap = (r.stride - r.width) * size;
    for (size_t i = 0; i < r.rows; i++) {
        unsigned char *at = image->host + image->at[array] + i * r.stride * size;
        real *host = data->array[array].data + i * r.width;
        if (up)
            put_numbers(at, host, r.width, bf16);
        else
            get_numbers(host, at, r.width, bf16);
        if (up) memset(at + r.width * size, 0xff, gap);
        for (size_t k = 0; k < gap; k++)
            CHECK(at[r.width * size + k] == 0xff, "something wrote between rows of %s",
                  array_names[array]);
    }
}

static void upload(const Image *image, const CaseData *data, Stream stream) {
    for (Array a = 0; a < ARRAYS; a++) move_rows(image, data, a, true);
    if (image->bytes[TOKENS])
        memcpy(image->host + image->at[TOKENS], data->tokens, image->bytes[TOKENS]);
    const size_t guard = last_guard(image);
    copy_to_device(stream, image->device, image->host, copied_end(image));
    copy_to_device(stream, image->device + guard, image->host + guard, image->total - guard);
    forbid_guards(image, true);
}

static void download(const Image *image, CaseData *data, Stream stream) {
    forbid_guards(image, false);
    const size_t guard = last_guard(image);
    copy_to_host(stream, image->host, image->device, copied_end(image));
    copy_to_host(stream, image->host + guard, image->device + guard, image->total - guard);
    const char *error = device_wait(stream) ? error_message() : NULL;
    CHECK(!error, "%s", error);
    check_guards(image);
    for (Array a = 0; a < ARRAYS; a++) move_rows(image, data, a, false);
}

/* Returns the device's copy of the array that `host` points to; NULL for NULL. */
static void *on_device(const Image *image, const CaseData *data, const real *host) {
    for (Array a = 0; host && a < ARRAYS; a++)
        if (data->array[a].data == host) return image->device + image->at[a];
    return NULL;
}

static DeviceIO device_io(const Image *image, const CaseData *data, const NodeIO *io) {
    return (DeviceIO){
        .n = io->n,
        .x = on_device(image, data, io->x),
        .skip = on_device(image, data, io->skip),
        .tokens = io->tokens ? (int *)(void *)(image->device + image->at[TOKENS]) : NULL,
        .y = on_device(image, data, io->y),
        .y_stride = image->align ? (int)rows_of(data, ARRAY_Y, image->align).stride : 0,
        .aux = on_device(image, data, io->aux),
        .weight = on_device(image, data, io->weight),
        .bias = on_device(image, data, io->bias),
        .running_mean = on_device(image, data, io->running_mean),
        .running_var = on_device(image, data, io->running_var),
        .use_running = io->use_running,
        .hold_running = io->hold_running,
        .sums_ready = io->sums_ready,
        .dy = on_device(image, data, io->dy),
        .dx = on_device(image, data, io->dx),
        .dskip = on_device(image, data, io->dskip),
        .add_dx = io->add_dx,
        .add_dskip = io->add_dskip,
        .dweight = on_device(image, data, io->dweight),
        .dbias = on_device(image, data, io->dbias),
        .add_dweight = io->add_dweight,
        .add_dbias = io->add_dbias,
    };
}

int device_case_run(CaseData *data, const NodeIO *io, How how, Calls calls) {
    Stream stream = device_test_stream();
    Image image;
    if (!stream) return -1;
    if (image_create(&image, data, how)) {
        test_fail(__FILE__, __LINE__, "memory", "%s", error_message());
        return -1;
    }
    upload(&image, data, stream);
    Run run = {stream, how.precision, how.version, image.device + image.at[WORKSPACE]};
    DeviceIO device = device_io(&image, data, io);
    device_choose_order(how.order);
    if (calls & RUN_FORWARD) cuda_node_forward(&run, &data->node, &device);
    if ((calls & RUN_GRADIENTS) && (io->dx || io->dskip))
        cuda_node_input_gradient(&run, &data->node, &device);
    bool both = io->dx && cuda_node_one_pass(data->node.kind);
    if ((calls & RUN_GRADIENTS) && (io->dweight || io->dbias) && !both)
        cuda_node_weight_gradient(&run, &data->node, &device);
    download(&image, data, stream);
    device_choose_order(0);
    image_free(&image);
    return 0;
}
