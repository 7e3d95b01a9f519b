/* Copies a block's output to and from the prefix cache in device memory, where a slot holds that of
 * one sample; and boundary values of a pipeline to and from messages (message.h). */
#include <limits.h>

#include "../message.h"
#include "stage_internal.h"

/* ---- the prefix cache ---- */

int cache_reserve(Stage *base, size_t width, size_t bytes) {
    CudaStage *s = cuda_stage(base);
    size_t size = width * value_bytes(&base->settings);
    arena_close(s, &s->cache);
    s->cache_width = width;
    size_t slots = size ? bytes / size : 0;
    if (slots > INT_MAX) slots = INT_MAX;
    if (arena_open(s, &s->cache, MEM_CACHE, slots * size, slots * size)) return -1;
    return (int)slots;
}

void cache_put(Stage *base, int block, const int *slots, int n) {
    CudaStage *s = cuda_stage(base);
    batch_send_slots(s, slots, n);
    cuda_move_rows(&s->run, s->cache.base, value_at(s, base->model->block[block].out),
                   fixed_at(s, s->fixed.slots), n, s->cache_width, false);
}

void cache_get(Stage *base, int block, const int *slots, int n) {
    CudaStage *s = cuda_stage(base);
    s->norm_done = -1;
    batch_send_slots(s, slots, n);
    cuda_move_rows(&s->run, value_at(s, base->model->block[block].out), s->cache.base,
                   fixed_at(s, s->fixed.slots), n, s->cache_width, true);
}

/* ---- messages ---- */

void *stage_cuda_message_create(Stage *base, size_t count) {
    return message_new(count * value_bytes(&base->settings));
}

static void *boundary(const CudaStage *s, TensorRole role, int block) {
    int out = s->base.model->block[block].out;
    return role == TENSOR_VALUE ? value_at(s, out) : value_gradient_at(s, out);
}

static size_t bytes_of(const CudaStage *s, int block) {
    const Model *m = s->base.model;
    return value_count(m, m->block[block].out, s->n) * value_bytes(&s->base.settings);
}

static void copy(const CudaStage *s, void *to, const void *from, size_t bytes, DeviceMessage *m) {
    stream_wait_event(s->run.stream, m->ready);
    copy_on_device(s->run.stream, to, from, bytes);
    event_record(m->ready, s->run.stream);
}

void stage_cuda_message_pack(Stage *base, TensorRole role, int block, void *message) {
    CudaStage *s = cuda_stage(base);
    DeviceMessage *m = message;
    size_t bytes = bytes_of(s, block);
    if (m->bytes < bytes)
        device_note("message: no room for %zu bytes in one of %zu", bytes, m->bytes);
    else
        copy(s, m->data, boundary(s, role, block), bytes, m);
}

int stage_cuda_message_unpack(Stage *base, TensorRole role, int block, void *message) {
    CudaStage *s = cuda_stage(base);
    DeviceMessage *m = message;
    size_t bytes = bytes_of(s, block);
    if (m->bytes != bytes)
        return error_set("message: %zu bytes came for %s, not %zu", m->bytes,
                         base->model->block[block].name, bytes);
    s->norm_done = -1; /* the norm that ran ahead read the old value */
    copy(s, boundary(s, role, block), m->data, bytes, m);
    return 0;
}
