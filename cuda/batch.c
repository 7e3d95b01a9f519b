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

static void send(CudaStage *s, size_t place, size_t bytes) {
    Feed *feed = &s->feed[s->fed];
    copy_to_device(s->run.stream, fixed_at(s, place), feed->pinned + place, bytes);
    event_record(feed->read, s->run.stream);
}

void batch_begin(Stage *base, const Batch *batch, Pass pass) {
    CudaStage *s = cuda_stage(base);
    const Model *m = base->model;
    size_t n = (size_t)batch->n, inputs = n * shape_count(m->input);
    const void *input = m->tokens ? (const void *)batch->tokens : batch->images;
    size_t input_bytes = inputs * (m->tokens ? sizeof(int) : sizeof(float));
    s->n = batch->n;
    s->pass = pass;
    s->normed = -1;
    s->fed = !s->fed;
    Feed *feed = &s->feed[s->fed];
    event_wait(feed->read);
    feed->scale_fed = feed->slots_fed = false;
    memcpy(feed->pinned + s->fixed.targets, batch->targets, n * (size_t)m->targets * sizeof(int));
    memcpy(feed->pinned + s->fixed.inputs, input, input_bytes);
    send(s, s->fixed.targets, s->fixed.inputs - s->fixed.targets + input_bytes);
    if (s->fixed.images != s->fixed.inputs)
        cuda_from_float(&s->run, fixed_at(s, s->fixed.images), fixed_at(s, s->fixed.inputs),
                        inputs);
}

/* The first time in a batch nothing can still be reading the place. */
static void feed_small(CudaStage *s, size_t place, const void *data, size_t bytes,
                       bool *fed_before) {
    if (*fed_before) event_wait(s->feed[s->fed].read);
    *fed_before = true;
    memcpy(s->feed[s->fed].pinned + place, data, bytes);
    send(s, place, bytes);
}

void batch_feed_scale(CudaStage *s, double scale) {
    float number = (float)scale;
    feed_small(s, s->fixed.scale, &number, sizeof number, &s->feed[s->fed].scale_fed);
}

void batch_feed_slots(CudaStage *s, const int *slots, int n) {
    feed_small(s, s->fixed.slots, slots, (size_t)n * sizeof *slots, &s->feed[s->fed].slots_fed);
}
