/* Copies boundary values of a pipeline to and from messages in device memory (message.h). */
#include "message.h"
#include "stage_inside.h"

void *handover_create(Stage *base, size_t count) {
    return message_new(count * value_bytes(&base->settings));
}

static void *boundary(const CudaStage *s, TensorRole role, int block) {
    int out = s->base.model->block[block].out;
    return role == TENSOR_VALUE ? value_at(s, out) : value_gradient_at(s, out);
}

static size_t boundary_bytes(const CudaStage *s, int block) {
    const Model *m = s->base.model;
    return value_count(m, m->block[block].out, s->n) * value_bytes(&s->base.settings);
}

static void copy(const CudaStage *s, void *to, const void *from, size_t bytes, DeviceMessage *m) {
    stream_wait_event(s->run.stream, m->ready);
    copy_on_device(s->run.stream, to, from, bytes);
    event_record(m->ready, s->run.stream);
}

void handover_take(Stage *base, TensorRole role, int block, void *message) {
    CudaStage *s = cuda_stage(base);
    DeviceMessage *m = message;
    size_t bytes = boundary_bytes(s, block);
    if (m->bytes < bytes)
        device_note("message: no room for %zu bytes in one of %zu", bytes, m->bytes);
    else
        copy(s, m->data, boundary(s, role, block), bytes, m);
}

int handover_give(Stage *base, TensorRole role, int block, void *message) {
    CudaStage *s = cuda_stage(base);
    DeviceMessage *m = message;
    size_t bytes = boundary_bytes(s, block);
    if (m->bytes != bytes)
        return error_set("message: %zu bytes came for %s, not %zu", m->bytes,
                         base->model->block[block].name, bytes);
    s->normed = -1; /* the norm that ran ahead read the old value */
    copy(s, boundary(s, role, block), m->data, bytes, m);
    return 0;
}
