/* Embeddings: a row of a table for each token, plus one for each position. */
#include <string.h>

#include "fast.h"
#include "rows.h"

static void add_rows(real *restrict y, const real *restrict x, int c) {
    for (int j = 0; j < c; j++) y[j] += x[j];
}

void fast_embedding_forward(real *y, const int *tokens, const real *token, const real *position,
                            int n, int t, int c) {
    const size_t width = (size_t)c;
#pragma omp parallel for if ((size_t)n * (size_t)t * width > WORTH_THREADS)
    for (int place = 0; place < n * t; place++) {
        real *out = y + (size_t)place * width;
        memcpy(out, token + (size_t)tokens[place] * width, width * sizeof *out);
        if (position) add_rows(out, position + (size_t)(place % t) * width, c);
    }
}

/* A token may occur at several places, so threads divide the channels and not the places: each goes
 * through all places in order, for its own slice of every row. */
void fast_embedding_weight_gradient(real *dtoken, const real *dy, const int *tokens, int n, int t,
                                    int c, int vocabulary, bool add) {
    enum { SLICE = 64 };
    const size_t width = (size_t)c;
    if (!add) {
#pragma omp parallel for if ((size_t)vocabulary * width > WORTH_THREADS)
        for (int v = 0; v < vocabulary; v++)
            memset(dtoken + (size_t)v * width, 0, width * sizeof *dtoken);
    }
#pragma omp parallel for if ((size_t)n * (size_t)t * width > WORTH_THREADS)
    for (int channel = 0; channel < c; channel += SLICE) {
        const int slice = c - channel < SLICE ? c - channel : SLICE;
        for (int place = 0; place < n * t; place++)
            add_rows(dtoken + (size_t)tokens[place] * width + channel,
                     dy + (size_t)place * width + channel, slice);
    }
}

void fast_embedding_position_gradient(real *dposition, const real *dy, int n, int t, int c,
                                      bool add) {
    const size_t width = (size_t)c;
#pragma omp parallel for if ((size_t)n * (size_t)t * width > WORTH_THREADS)
    for (int place = 0; place < t; place++) {
        real *sum = dposition + (size_t)place * width;
        if (!add) memset(sum, 0, width * sizeof *sum);
        for (int i = 0; i < n; i++)
            add_rows(sum, dy + ((size_t)i * (size_t)t + (size_t)place) * width, c);
    }
}
