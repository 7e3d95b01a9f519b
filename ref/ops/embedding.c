/* Embeddings: each token selects a row of a table, and each position one of another (Vaswani et al.
 * 2017, section 3.4, with learned positions). */
#include "plain.h"

/* y[n][t][c] = token[tokens[n][t]][c] + position[t][c] */
void embedding_forward(real *y, const int *tokens, const real *token, const real *position, int n,
                       int t, int c) {
    for (ptrdiff_t i = 0; i < (ptrdiff_t)n * t; i++)
        for (ptrdiff_t j = 0; j < c; j++)
            y[i * c + j] =
                token[(ptrdiff_t)tokens[i] * c + j] + (position ? position[i % t * c + j] : 0);
}

/* dtoken[v][c] = sum of dy[n][t][c] over all (n, t) with tokens[n][t] = v.  It adds to dtoken in
 * the order of (n, t), because a sum for one v at a time would search all tokens for every v. */
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
        set_or_add(&dposition[i], sum, add);
    }
}
