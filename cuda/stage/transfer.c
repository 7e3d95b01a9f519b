/* Copies tensors between the host, where they are float, and the device, where weights and values
 * may be bf16.  Every function waits until its copies are done. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/bf16.h"
#include "../../ref/base/error.h"
#include "stage_internal.h"

void round_to_bf16(uint16_t *y, const float *x, size_t count) {
#pragma omp parallel for if (count > WORTH_THREADS)
    for (size_t i = 0; i < count; i++) y[i] = bf16_of(x[i]);
}

/* ---- copies in pieces, through page-locked memory ---- */

enum { PIECE = STAGING_BYTES / sizeof(float) };

static size_t piece(size_t count, size_t first) {
    return count - first < PIECE ? count - first : PIECE;
}

/* A number takes `size` bytes on the device: 4 as float, 2 as bf16. */
static int upload(CudaStage *s, void *to, size_t size, const float *from, size_t count) {
    for (size_t first = 0; first < count; first += PIECE) {
        size_t n = piece(count, first);
        if (size == sizeof(float))
            memcpy(s->staging, from + first, n * sizeof(float));
        else
            round_to_bf16((uint16_t *)(void *)s->staging, from + first, n);
        copy_to_device(s->run.stream, (char *)to + first * size, s->staging, n * size);
        if (device_wait(s->run.stream)) return -1;
    }
    return 0;
}

int transfer_to_host(CudaStage *s, float *to, const void *from, size_t size, size_t count) {
    for (size_t first = 0; first < count; first += PIECE) {
        size_t n = piece(count, first);
        copy_to_host(s->run.stream, s->staging, (const char *)from + first * size, n * size);
        if (device_wait(s->run.stream)) return -1;
        const uint16_t *halves = (const uint16_t *)(const void *)s->staging;
        if (size == sizeof(float))
            memcpy(to + first, s->staging, n * sizeof(float));
        else
            for (size_t i = 0; i < n; i++) to[first + i] = float_of_bf16(halves[i]);
    }
    return 0;
}

/* ---- initial values ---- */

static int initial_parameter(CudaStage *s, int param, float *values) {
    const Model *m = s->base.model;
    if (!weight_at(s, param)) return 0;
    size_t count = m->param[param].count, size = value_bytes(&s->base.settings);
    float *master = host_master_at(s, param);
    for (size_t first = 0; first < count; first += PIECE) {
        size_t n = piece(count, first);
        float *into = master ? master + first : values;
#pragma omp parallel for if (n > WORTH_THREADS)
        for (size_t i = 0; i < n; i++)
            into[i] = model_initial(m, param, s->base.settings.seed, first + i);
        if (upload(s, (char *)weight_at(s, param) + first * size, size, into, n)) return -1;
    }
    return 0;
}

int transfer_initial(CudaStage *s) {
    const Model *m = s->base.model;
    float *values = malloc(STAGING_BYTES); /* copied to the staging buffer from there */
    int failed = values ? 0 : error_set("memory: the host has no %d bytes", (int)STAGING_BYTES);
    const int drawn = s->base.settings.skip_init ? 0 : m->params;
    for (int p = 0; p < drawn && !failed; p++) failed = initial_parameter(s, p, values);
    for (int k = 0; k < m->buffers && !failed; k++) {
        if (!buffer_at(s, k)) continue;
        size_t count = (size_t)m->buffer[k].count;
        for (size_t i = 0; i < count; i++) values[i] = m->buffer[k].init == INIT_ONES;
        failed = upload(s, buffer_at(s, k), sizeof(float), values, count);
    }
    free(values);
    return failed;
}

/* ---- any tensor ---- */

typedef struct {
    void *at; /* NULL if it does not exist now */
    bool on_host;
    size_t size, rows, width, stride; /* rows of `width` numbers, `stride` apart */
} Tensor;

static Tensor tensor_of(void *at, bool on_host, size_t size, size_t count) {
    return (Tensor){at, on_host, size, 1, count, count};
}

static Tensor float_tensor(void *at, bool on_host, size_t count) {
    return tensor_of(at, on_host, sizeof(float), count);
}

/* Moves a tensor to the host's array `to` or, if that is NULL, from its array `from`.  Rows
 * that have no gaps between them move at once. */
static int move_tensor(CudaStage *s, Tensor t, float *to, const float *from) {
    size_t count = t.rows * t.width, rows = t.stride == t.width ? 1 : t.rows, width = count / rows;
    if (t.on_host) memcpy(to ? to : t.at, to ? t.at : from, count * sizeof(float));
    for (size_t row = 0; row < rows && !t.on_host; row++) {
        char *at = (char *)t.at + row * t.stride * t.size;
        if (to ? transfer_to_host(s, to + row * width, at, t.size, width)
               : upload(s, at, t.size, from + row * width, width))
            return -1;
    }
    return 0;
}

/* Returns the numbers that the optimizer updates: the master if there is one, else the weights.  A
 * copy of a parameter that another stage owns has no master. */
static Tensor parameter_tensor(const CudaStage *s, int number) {
    size_t count = s->base.model->param[number].count;
    void *master = master_at(s, number), *host_master = host_master_at(s, number);
    if (master) return float_tensor(master, false, count);
    if (host_master) return float_tensor(host_master, true, count);
    return tensor_of(weight_at(s, number), false, value_bytes(&s->base.settings), count);
}

/* Returns a block's output, or its gradient, of the micro-batch in flight. */
static Tensor value_tensor(const CudaStage *s, int block, bool gradient) {
    const Model *m = s->base.model;
    const StageSettings *settings = &s->base.settings;
    int out = m->block[block].out;
    if (!value_is_local(m, settings, out)) return (Tensor){0};
    size_t width = (size_t)m->value[out].shape.c;
    return (Tensor){.at = gradient ? value_gradient_at(s, out) : value_at(s, out),
                    .size = value_bytes(settings),
                    .rows = value_count(m, out, s->n) / width,
                    .width = width,
                    .stride = (size_t)value_stride(m, settings, out)};
}

static Tensor find(const CudaStage *s, TensorRole role, int number) {
    const Model *m = s->base.model;
    bool offload = s->base.settings.offload;
    switch (role) {
        case TENSOR_PARAMETER:
            return parameter_tensor(s, number);
        case TENSOR_BUFFER:
            return float_tensor(buffer_at(s, number), false, (size_t)m->buffer[number].count);
        case TENSOR_GRADIENT:
            return float_tensor(gradient_at(s, number), false, m->param[number].count);
        case TENSOR_STATE0:
        case TENSOR_STATE1:
            return float_tensor(state_at(s, role == TENSOR_STATE1, number), offload,
                                m->param[number].count);
        case TENSOR_VALUE:
        case TENSOR_VALUE_GRADIENT:
            return value_tensor(s, number, role == TENSOR_VALUE_GRADIENT);
    }
    return (Tensor){0};
}

size_t transfer_read(Stage *base, TensorRole role, int number, real *data) {
    CudaStage *s = cuda_stage(base);
    Tensor tensor = find(s, role, number);
    if (!tensor.at) return 0;
    size_t count = tensor.rows * tensor.width;
    return data && move_tensor(s, tensor, data, NULL) ? READ_FAILED : count;
}

static int refuse_write(const Model *m, TensorRole role, int number) {
    if (role == TENSOR_VALUE || role == TENSOR_VALUE_GRADIENT)
        return error_set("stage: the output of %s is not here", m->block[number].name);
    if (role == TENSOR_BUFFER)
        return error_set("stage: running statistics %d are not here", number);
    return error_set("stage: %s has no gradient or optimizer state now", m->param[number].name);
}

int transfer_write(Stage *base, TensorRole role, int number, const real *data) {
    CudaStage *s = cuda_stage(base);
    bool state = role == TENSOR_STATE0 || role == TENSOR_STATE1;
    if (state && base->settings.keep_state && state_allocate(s, base->model->param[number].block))
        return -1;
    Tensor tensor = find(s, role, number);
    if (!tensor.at) return refuse_write(base->model, role, number);
    s->norm_done = -1; /* the norm that ran ahead read the old value */
    if (move_tensor(s, tensor, NULL, data)) return -1;
    if (role != TENSOR_PARAMETER || tensor.at == weight_at(s, number)) return 0;
    return upload(s, weight_at(s, number), value_bytes(&base->settings), data, tensor.width);
}
