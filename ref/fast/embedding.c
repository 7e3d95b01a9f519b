/* Embeddings: a row of a table for each token, plus one for each position. */
#include <string.h>

#include "../ops/ops.h"

static void add_rows(real *restrict y, const real *restrict x, int c) {
    for (int j = 0; j < c; j++) y[j] += x[j];
}

void fast_embedding_forward(real *y, const int *tokens, const real *token, const real *position,
                            int n, int t, int c) {
    const ptrdiff_t places = (ptrdiff_t)n * t;
#pragma omp parallel for if (places * c > WORTH_THREADS)
    for (ptrdiff_t i = 0; i < places; i++) {
        memcpy(y + i * c, token + (ptrdiff_t)tokens[i] * c, (size_t)c * sizeof *y);
        if (position) add_rows(y + i * c, position + i % t * c, c);
    }
}

/* A token may occur at several places, so threads divide the channels and not the places: each goes
 * through all places in order, for its own slice of every row. */
void fast_embedding_weight_gradient(real *dtoken, const real *dy, const int *tokens, int n, int t,
                                    int c, int vocabulary, bool add) {
    enum { SLICE = 64 };
    const ptrdiff_t places = (ptrdiff_t)n * t, all = (ptrdiff_t)vocabulary * c;
    if (!add) {
#pragma omp parallel for if (all > WORTH_THREADS)
        for (ptrdiff_t v = 0; v < vocabulary; v++)
            memset(dtoken + v * c, 0, (size_t)c * sizeof *dtoken);
    }
#pragma omp parallel for if (places * c > WORTH_THREADS)
    for (int channel = 0; channel < c; channel += SLICE)
        for (ptrdiff_t i = 0; i < places; i++)
            add_rows(dtoken + (ptrdiff_t)tokens[i] * c + channel, dy + i * c + channel,
                     c - channel < SLICE ? c - channel : SLICE);
}

void fast_embedding_position_gradient(real *dposition, const real *dy, int n, int t, int c,
                                      bool add) {
#pragma omp parallel for if ((ptrdiff_t)n * t * c > WORTH_THREADS)
    for (ptrdiff_t place = 0; place < t; place++) {
        real *sum = dposition + place * c;
        if (!add) memset(sum, 0, (size_t)c * sizeof *sum);
        for (ptrdiff_t i = 0; i < n; i++) add_rows(sum, dy + (i * t + place) * c, c);
    }
}
