/* Embeddings: a row of a table for each token, plus one for each position (Vaswani et al. 2017,
 * section 3.4; learned positions). */
#include "plain.h"

/* y[n][t][c] = token[tokens[n][t]][c] + position[t][c] */
void embedding_forward(real *y, const int *tokens, const real *token, const real *position, int n,
                       int t, int c) {
    for (ptrdiff_t i = 0; i < (ptrdiff_t)n * t; i++)
        for (ptrdiff_t j = 0; j < c; j++)
            y[i * c + j] =
                token[(ptrdiff_t)tokens[i] * c + j] + (position ? position[i % t * c + j] : 0);
}

/* dtoken[v][c] = sum of dy[n][t][c] over the places where tokens[n][t] = v.  Summed in place: a sum
 * apart for each v would look at every place once for every word of the vocabulary. */
void embedding_weight_gradient(real *dtoken, const real *dy, const int *tokens, int n, int t, int c,
                               int vocabulary, bool add) {
    for (ptrdiff_t i = 0; !add && i < (ptrdiff_t)vocabulary * c; i++) dtoken[i] = 0;
    for (ptrdiff_t i = 0; i < (ptrdiff_t)n * t; i++)
        for (ptrdiff_t j = 0; j < c; j++) dtoken[(ptrdiff_t)tokens[i] * c + j] += dy[i * c + j];
}

/* dposition[t][c] = sum_n dy[n][t][c] */
void embedding_position_gradient(real *dposition, const real *dy, int n, int t, int c, bool add) {
    for (ptrdiff_t i = 0; i < (ptrdiff_t)t * c; i++) {
        double sum = 0;
        for (ptrdiff_t sample = 0; sample < n; sample++) sum += dy[sample * t * c + i];
        put(&dposition[i], sum, add);
    }
}
