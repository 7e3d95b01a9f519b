#include "dataset.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/random.h"

int batch_reserve(Batch *batch, const Model *model, int n) {
    *batch = (Batch){.n = n};
    size_t samples = (size_t)n, inputs = samples * shape_count(model->input);
    batch->ids = calloc(samples, sizeof *batch->ids);
    batch->targets = calloc(samples * (size_t)model->targets, sizeof *batch->targets);
    if (model->tokens)
        batch->tokens = calloc(inputs, sizeof *batch->tokens);
    else
        batch->images = calloc(inputs, sizeof *batch->images);
    if (batch->ids && batch->targets && (batch->tokens || batch->images)) return 0;
    batch_free(batch);
    return error_set("data: out of memory for a batch of %d samples", n);
}

void batch_free(Batch *batch) {
    free(batch->ids);
    free(batch->images);
    free(batch->tokens);
    free(batch->targets);
    *batch = (Batch){0};
}

Batch batch_slice(const Batch *batch, const Model *m, int first, int end) {
    if (end <= first) return (Batch){.n = 0};
    size_t skip = (size_t)first, input = shape_count(m->input);
    return (Batch){.n = end - first,
                   .resident = batch->resident,
                   .position = batch->position,
                   .ids = batch->ids + skip,
                   .images = batch->images ? batch->images + skip * input : NULL,
                   .tokens = batch->tokens ? batch->tokens + skip * input : NULL,
                   .targets = batch->targets + skip * (size_t)m->targets};
}

double batch_target_count(const Batch *batch, const Model *m) {
    size_t all = (size_t)batch->n * (size_t)m->targets, count = 0;
    for (size_t i = 0; i < all; i++) count += batch->targets[i] >= 0;
    return count ? (double)count : 1;
}

void dataset_free(Dataset *dataset) {
    if (dataset) dataset->free(dataset);
}

size_t dataset_resident_bytes(const Dataset *data) {
    if (!data->bytes) return 0;
    return align_bytes((size_t)data->input.c * 256 * sizeof(real)) +
           align_bytes((size_t)data->samples * shape_count(data->input));
}

static const uint64_t NONE = UINT64_MAX; /* no draw or epoch prepared yet */

int sampler_used(int samples, double fraction) {
    const int used = (int)lround(fraction * samples);
    return used < 1 ? 1 : used;
}

int sampler_init(Sampler *s, uint64_t seed, int samples, double fraction) {
    *s = (Sampler){.seed = seed, .samples = samples, .draw = NONE, .epoch = NONE};
    if (samples < 1 || !(fraction > 0 && fraction <= 1))
        return error_set("data: a fraction of %g of %d samples; use more than 0, at most 1",
                         fraction, samples);
    s->used = sampler_used(samples, fraction);
    if (samples > SAMPLER_ARRAY) return 0;
    /* Drawing permutes all samples; a subset of all of them needs no drawing. */
    s->subset = s->used < samples ? calloc((size_t)samples, sizeof *s->subset) : NULL;
    s->order = calloc((size_t)s->used, sizeof *s->order);
    if (s->order && (s->subset || s->used == samples)) return 0;
    sampler_free(s);
    return error_set("data: out of memory for the order of %d samples", samples);
}

void sampler_free(Sampler *s) {
    free(s->subset);
    free(s->order);
    *s = (Sampler){0};
}

static int ascending(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

void sampler_draw(Sampler *s, uint64_t draw) {
    if (s->draw == draw) return;
    s->draw = draw;
    if (!s->subset) return;
    random_permutation(s->subset, s->samples, s->seed, STREAM_SUBSET, draw);
    qsort(s->subset, (size_t)s->used, sizeof *s->subset, ascending);
    s->epoch = NONE;
}

/* Returns the sample at a position of an epoch, where there are no arrays. */
static int compute_id(const Sampler *s, uint64_t epoch, int position) {
    const int at = random_permuted(position, s->used, s->seed, STREAM_SHUFFLE, epoch);
    return s->used == s->samples ? at
                                 : random_permuted(at, s->samples, s->seed, STREAM_SUBSET, s->draw);
}

void sampler_ids(Sampler *s, int *ids, uint64_t position, int n) {
    for (int i = 0; i < n; i++, position++) {
        const uint64_t epoch = position / (uint64_t)s->used;
        const int in_epoch = (int)(position % (uint64_t)s->used);
        if (!s->order) {
            ids[i] = compute_id(s, epoch, in_epoch);
            continue;
        }
        if (s->epoch != epoch) {
            random_permutation(s->order, s->used, s->seed, STREAM_SHUFFLE, epoch);
            s->epoch = epoch;
        }
        const int at = s->order[in_epoch];
        ids[i] = s->subset ? s->subset[at] : at;
    }
}
