/* A micro-batch on its way to the device: copied into page-locked memory, from there on the stream
 * to a place that never changes, so that recorded steps find it. */
#include <string.h>

#include "../ref/error.h"
#include "stage_inside.h"

int batch_open(CudaStage *s) {
    for (int k = 0; k < 2; k++) {
        Feed *feed = &s->feed[k];
        feed->pinned = pinned_alloc(s->fixed.fed);
        feed->read = event_create();
        if (!feed->pinned || !feed->read)
            return error_set("memory: the host has no %zu bytes for batches", s->fixed.fed);
    }
    s->answer = pinned_alloc(sizeof *s->answer);
    return s->answer ? 0 : error_set("memory: the host has no page-locked memory");
}

void batch_close(CudaStage *s) {
    for (int k = 0; k < 2; k++) {
        pinned_free(s->feed[k].pinned);
        if (s->feed[k].read) event_free(s->feed[k].read);
    }
    pinned_free(s->answer);
}

/* The feed of the batch in flight. */
static Feed *own_feed(CudaStage *s) {
    if (!s->feeding) {
        s->fed = !s->fed;
        s->feeding = true;
        Feed *next = &s->feed[s->fed];
        event_wait(next->read);
        next->inputs = next->targets = next->scale = next->slots = false;
    }
    return &s->feed[s->fed];
}

static void send(CudaStage *s, size_t place, const void *data, size_t bytes) {
    Feed *feed = own_feed(s);
    memcpy(feed->pinned + place, data, bytes);
    copy_to_device(s->run.stream, fixed_at(s, place), feed->pinned + place, bytes);
    event_record(feed->read, s->run.stream);
}

void batch_select(Stage *base, int micro_batch) {
    CudaStage *s = cuda_stage(base);
    s->micro_batch = micro_batch;
    s->normed = -1;
}

void batch_begin(Stage *base, const Batch *batch, Mode mode) {
    CudaStage *s = cuda_stage(base);
    s->batch = *batch;
    s->n = batch->n;
    s->mode = mode;
    s->normed = -1;
    s->feeding = false;
    if (mode != MODE_TRAIN || s->stepping) return;
    copy_on_device(s->run.stream, s->buffers_before.base, s->buffers.base, s->buffer_bytes);
    s->stepping = true;
}

void batch_feed_inputs(CudaStage *s) {
    const Model *m = s->base.model;
    Feed *feed = own_feed(s);
    if (feed->inputs) return;
    feed->inputs = true;
    size_t count = (size_t)s->n * shape_count(m->input);
    if (m->tokens)
        send(s, s->fixed.inputs, s->batch.tokens, count * sizeof(int));
    else
        send(s, s->fixed.inputs, s->batch.images, count * sizeof(float));
    if (s->fixed.images != s->fixed.inputs)
        cuda_from_float(&s->run, fixed_at(s, s->fixed.images), fixed_at(s, s->fixed.inputs), count);
}

void batch_feed_targets(CudaStage *s) {
    Feed *feed = own_feed(s);
    if (feed->targets) return;
    feed->targets = true;
    send(s, s->fixed.targets, s->batch.targets,
         (size_t)s->n * (size_t)s->base.model->targets * sizeof(int));
}

/* The first time in a batch nothing can still be reading the place. */
static void feed_small(CudaStage *s, size_t place, const void *data, size_t bytes, bool *fed) {
    if (*fed) event_wait(s->feed[s->fed].read);
    *fed = true;
    send(s, place, data, bytes);
}

void batch_feed_scale(CudaStage *s, double scale) {
    float number = (float)scale;
    feed_small(s, s->fixed.scale, &number, sizeof number, &own_feed(s)->scale);
}

void batch_feed_slots(CudaStage *s, const int *slots, int n) {
    feed_small(s, s->fixed.slots, slots, (size_t)n * sizeof *slots, &own_feed(s)->slots);
}
