/* Copies a micro-batch into page-locked memory, and from there, on the stream, to a device address
 * that never changes, so that captured steps find it. */
#include <string.h>

#include "../../ref/base/error.h"
#include "stage_internal.h"

int batch_open(CudaStage *s) {
    for (int k = 0; k < 2; k++) {
        BatchBuffer *buffer = &s->batch_buffer[k];
        buffer->pinned = pinned_alloc(s->fixed.sent);
        buffer->read = event_create(false);
        if (!buffer->pinned || !buffer->read)
            return error_set("memory: the host has no %zu bytes for batches: %s", s->fixed.sent,
                             error_message());
    }
    s->answer = pinned_alloc(sizeof *s->answer);
    return s->answer ? 0 : -1;
}

void batch_close(CudaStage *s) {
    for (int k = 0; k < 2; k++) {
        pinned_free(s->batch_buffer[k].pinned);
        event_free(s->batch_buffer[k].read);
    }
    pinned_free(s->answer);
}

/* Returns the staging buffer of the batch in flight.  The first call for a batch takes the other
 * buffer, and waits until the device has read its last contents. */
static BatchBuffer *own_buffer(CudaStage *s) {
    if (!s->buffer_taken) {
        s->buffer_in_use = !s->buffer_in_use;
        s->buffer_taken = true;
        BatchBuffer *next = &s->batch_buffer[s->buffer_in_use];
        event_finish(next->read);
        next->inputs = next->targets = next->scale = next->slots = false;
    }
    return &s->batch_buffer[s->buffer_in_use];
}

/* Copies with several threads: a batch of images is some megabytes, and one thread would need
 * longer to copy it than the device to receive it. */
static void copy_to_pinned(char *to, const void *from, size_t bytes) {
    const size_t part = (size_t)1 << 20;
    const char *source = from;
#pragma omp parallel for if (bytes > part)
    for (size_t at = 0; at < bytes; at += part)
        memcpy(to + at, source + at, bytes - at < part ? bytes - at : part);
}

static void send(CudaStage *s, size_t offset, const void *data, size_t bytes) {
    BatchBuffer *buffer = own_buffer(s);
    copy_to_pinned(buffer->pinned + offset, data, bytes);
    copy_to_device(s->run.stream, fixed_at(s, offset), buffer->pinned + offset, bytes);
    event_record(buffer->read, s->run.stream);
}

void batch_select(Stage *base, int micro_batch) {
    CudaStage *s = cuda_stage(base);
    s->micro_batch = micro_batch;
    s->norm_done = -1;
}

void batch_begin(Stage *base, const Batch *batch, Mode mode) {
    CudaStage *s = cuda_stage(base);
    s->batch = *batch;
    s->n = batch->n;
    s->mode = mode;
    s->norm_done = -1;
    s->buffer_taken = false;
    if (mode != MODE_TRAIN || s->stepping) return;
    copy_on_device(s->run.stream, s->buffers_before.base, s->buffers.base, s->buffer_bytes);
    s->stepping = true;
}

int batch_keep_images(Stage *base, Dataset *data) {
    CudaStage *s = cuda_stage(base);
    const ImageBytes *from = data->bytes;
    size_t bytes = dataset_resident_bytes(data), sample = shape_count(data->input);
    if (!bytes || s->residents == RESIDENTS ||
        bytes > base->settings.image_bytes - s->resident_bytes)
        return error_set("stage: no room on the device for the images of %s", data->name);
    char *normal = (char *)fixed_at(s, s->fixed.resident) + s->resident_bytes;
    size_t normal_bytes = (size_t)data->input.c * 256 * sizeof(float);
    char *planes = normal + align_bytes(normal_bytes);
    memcpy(s->staging, from->normal, normal_bytes);
    copy_to_device(s->run.stream, normal, s->staging, normal_bytes);
    size_t samples = (size_t)data->samples, part = STAGING_BYTES / sample;
    for (size_t first = 0; first < samples; first += part) {
        size_t n = samples - first < part ? samples - first : part;
        if (device_wait(s->run.stream)) return -1;
        for (size_t i = 0; i < n; i++)
            memcpy(s->staging + i * sample, from->first + (first + i) * from->step, sample);
        copy_to_device(s->run.stream, planes + first * sample, s->staging, n * sample);
    }
    if (device_wait(s->run.stream)) return -1;
    s->resident[s->residents++] = (Resident){data,
                                             {.planes = (unsigned char *)planes,
                                              .normal = (float *)(void *)normal,
                                              .h = data->input.h,
                                              .w = data->input.w,
                                              .c = data->input.c,
                                              .pad = from->pad,
                                              .augmented = data->augmented,
                                              .seed = from->seed}};
    s->resident_bytes += bytes;
    data->resident = true;
    return 0;
}

static void make_images(CudaStage *s) {
    int i = 0;
    while (i < s->residents && s->resident[i].data != s->batch.resident) i++;
    if (i == s->residents) {
        device_note("stage: the images of %s are on another device", s->batch.resident->name);
        return;
    }
    send(s, s->fixed.ids, s->batch.ids, (size_t)s->n * sizeof(int));
    cuda_make_images(&s->run, fixed_at(s, s->fixed.images), fixed_at(s, s->fixed.ids), s->n,
                     s->resident[i].images, s->batch.position);
}

void batch_send_tokens(CudaStage *s, size_t count) {
    own_buffer(s)->inputs = true;
    send(s, s->fixed.inputs, s->batch.tokens, count * sizeof(int));
}

void batch_send_inputs(CudaStage *s) {
    const Model *m = s->base.model;
    BatchBuffer *buffer = own_buffer(s);
    if (buffer->inputs) return;
    buffer->inputs = true;
    if (s->batch.resident) {
        make_images(s);
        return;
    }
    size_t count = (size_t)s->n * shape_count(m->input);
    if (m->tokens)
        batch_send_tokens(s, count);
    else
        send(s, s->fixed.inputs, s->batch.images, count * sizeof(float));
    if (s->fixed.images != s->fixed.inputs)
        cuda_from_float(&s->run, fixed_at(s, s->fixed.images), fixed_at(s, s->fixed.inputs), count);
}

void batch_send_targets(CudaStage *s) {
    BatchBuffer *buffer = own_buffer(s);
    if (buffer->targets) return;
    buffer->targets = true;
    send(s, s->fixed.targets, s->batch.targets,
         (size_t)s->n * (size_t)s->base.model->targets * sizeof(int));
}

/* Sends data that may be sent several times in a batch.  From the second time on it waits until the
 * device has read the staging buffer. */
static void send_small(CudaStage *s, size_t offset, const void *data, size_t bytes, bool *sent) {
    if (*sent) event_finish(s->batch_buffer[s->buffer_in_use].read);
    *sent = true;
    send(s, offset, data, bytes);
}

void batch_send_scale(CudaStage *s, double scale) {
    float number = (float)scale;
    send_small(s, s->fixed.scale, &number, sizeof number, &own_buffer(s)->scale);
}

void batch_send_slots(CudaStage *s, const int *slots, int n) {
    send_small(s, s->fixed.slots, slots, (size_t)n * sizeof *slots, &own_buffer(s)->slots);
}
