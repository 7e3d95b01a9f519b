#include "generate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

int generator_open(Generator *g, const Setup *setup) {
    const Model *model = setup->model;
    *g = (Generator){.model = model, .stage = setup->stage};
    const bool whole = !g->stage->is->extend;
    const size_t positions = whole ? (size_t)model->input.w : 1;
    g->logits = xmalloc(positions * (size_t)model->outputs * sizeof *g->logits);
    if (!whole) return 0;
    if (batch_reserve(&g->batch, model, 1)) return -1;
    memset(g->batch.targets, 0, (size_t)model->targets * sizeof *g->batch.targets);
    g->batch.ids[0] = 0;
    return 0;
}

void generator_close(Generator *g) {
    batch_free(&g->batch);
    free(g->logits);
    *g = (Generator){.model = NULL};
}

/* Reads tokens 0 .. visible - 1 and, which causal attention does not see, zeros behind them. */
static const real *read_whole(Generator *g, const int *text, size_t visible) {
    Stage *stage = g->stage;
    memset(g->batch.tokens, 0, (size_t)g->model->input.w * sizeof *g->batch.tokens);
    memcpy(g->batch.tokens, text, visible * sizeof *text);
    stage_begin(stage, &g->batch, MODE_EVALUATE);
    for (int b = 0; b < g->model->blocks; b++) stage_forward(stage, b);
    if (stage_read(stage, TENSOR_VALUE, g->model->blocks - 1, g->logits) == READ_FAILED)
        return NULL;
    return g->logits + (visible - 1) * (size_t)g->model->outputs;
}

const real *generator_next(Generator *g, const int *text, size_t count) {
    const size_t context = (size_t)g->model->input.w;
    const size_t kept =
        g->read ? (context + 1) / 2 : context; /* of the text, or of a long prompt */
    if (count - g->start > context) g->start = g->read = count - kept;
    if (!g->stage->is->extend) {
        g->read = count;
        return read_whole(g, text + g->start, count - g->start);
    }
    if (stage_extend(g->stage, (int)(g->read - g->start), text + g->read, (int)(count - g->read),
                     g->logits))
        return NULL;
    g->read = count;
    return g->logits;
}

/* ---- draw ------------------------------------------------------------------------------------ */

static int descending(const void *a, const void *b) {
    real x = *(const real *)a, y = *(const real *)b;
    return (x < y) - (x > y);
}

/* Returns the smallest logit that may be drawn: of the k largest (0: all), the largest that
 * together have probability p (nucleus sampling, Holtzman et al. 2020). */
static real threshold(const real *logits, int vocabulary, const SampleFlags *flags) {
    const size_t count = (size_t)vocabulary, k = (size_t)flags->top_k;
    size_t allowed = k && k < count ? k : count, kept = 0;
    double sum = 0, part = 0;
    real *sorted = xmalloc(count * sizeof *sorted);
    memcpy(sorted, logits, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, descending);
    for (size_t i = 0; i < allowed; i++)
        sum += exp((double)(sorted[i] - sorted[0]) / flags->temperature);
    while (kept < allowed && part < flags->top_p * sum)
        part += exp((double)(sorted[kept++] - sorted[0]) / flags->temperature);
    real min = sorted[kept ? kept - 1 : 0];
    free(sorted);
    return min;
}

int generator_draw(const real *logits, int vocabulary, const SampleFlags *flags, double u) {
    int best = 0;
    for (int v = 1; v < vocabulary; v++)
        if (logits[v] > logits[best]) best = v;
    if (flags->temperature <= 0) return best;
    bool limited = flags->top_k || flags->top_p < 1;
    real min = limited ? threshold(logits, vocabulary, flags) : (real)-INFINITY;
    double sum = 0, highest = (double)logits[best];
    for (int v = 0; v < vocabulary; v++)
        if (logits[v] >= min) sum += exp(((double)logits[v] - highest) / flags->temperature);
    double left = u * sum;
    for (int v = 0; v < vocabulary; v++) {
        if (!(logits[v] >= min)) continue;
        left -= exp(((double)logits[v] - highest) / flags->temperature);
        if (left < 0) return v;
    }
    return best;
}
