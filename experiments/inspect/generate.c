#include "generate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

void generator_open(Generator *g, Stage *stage) {
    *g = (Generator){.model = stage->model, .stage = stage};
    g->logits = xmalloc((size_t)stage->model->outputs * sizeof *g->logits);
}

void generator_close(Generator *g) {
    free(g->logits);
    *g = (Generator){.model = NULL};
}

const real *generator_next(Generator *g, const int *text, size_t count) {
    const size_t context = (size_t)g->model->input.w;
    const size_t kept =
        g->read ? (context + 1) / 2 : context; /* of the text, or of a long prompt */
    if (count - g->start > context) g->start = g->read = count - kept;
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
