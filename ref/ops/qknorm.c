/* Root mean square norms of the queries and keys that attention reads (Henry et al. 2020,
 * "Query-Key Normalization", with the norm of Zhang & Sennrich 2019, eq. 4).  A position has all
 * queries, then the keys, then the values, which pass unchanged.  Qwen 3 normalises each head on
 * its own, with a scale of d numbers for all of them; OLMo 2 all heads of a position together. */
#include "plain.h"

QkVectors qk_vectors(Attention a, bool whole) {
    return whole ? (QkVectors){.q = 1, .k = 1, .q_size = a.heads * a.d, .k_size = a.groups * a.d}
                 : (QkVectors){.q = a.heads, .k = a.groups, .q_size = a.d, .k_size = a.d};
}

/* A vector that is normalised: where it begins in a position, its length, its scale. */
typedef struct {
    ptrdiff_t at;
    int size;
    const real *g;
} Vector;

/* Returns vector i of a position: the queries, then the keys. */
static Vector vector_of(QkVectors v, int i, const real *gq, const real *gk) {
    if (i < v.q) return (Vector){(ptrdiff_t)i * v.q_size, v.q_size, gq};
    return (Vector){(ptrdiff_t)v.q * v.q_size + (ptrdiff_t)(i - v.q) * v.k_size, v.k_size, gk};
}

static ptrdiff_t width_of(Attention a) { return (ptrdiff_t)(a.heads + 2 * a.groups) * a.d; }
static ptrdiff_t values_at(Attention a) { return (ptrdiff_t)(a.heads + a.groups) * a.d; }

/* y = g x rrms for each vector, rrms = 1 / sqrt(mean(x^2) + eps) */
void qknorm_forward(real *y, real *rrms, const real *x, const real *gq, const real *gk, int n,
                    Attention a, bool whole, double eps) {
    const QkVectors v = qk_vectors(a, whole);
    const ptrdiff_t width = width_of(a);
    for (ptrdiff_t row = 0; row < n; row++) {
        for (int i = 0; i < v.q + v.k; i++) {
            const Vector z = vector_of(v, i, gq, gk);
            const ptrdiff_t at = row * width + z.at;
            rmsnorm_forward(y + at, rrms + row * (v.q + v.k) + i, x + at, z.g, 1, z.size, eps);
        }
        for (ptrdiff_t j = values_at(a); j < width; j++) y[row * width + j] = x[row * width + j];
    }
}

void qknorm_input_gradient(real *dx, const real *dy, const real *x, const real *gq, const real *gk,
                           const real *rrms, int n, Attention a, bool whole, bool add) {
    const QkVectors v = qk_vectors(a, whole);
    const ptrdiff_t width = width_of(a);
    for (ptrdiff_t row = 0; row < n; row++) {
        for (int i = 0; i < v.q + v.k; i++) {
            const Vector z = vector_of(v, i, gq, gk);
            const ptrdiff_t at = row * width + z.at;
            rmsnorm_input_gradient(dx + at, dy + at, x + at, z.g, rrms + row * (v.q + v.k) + i, 1,
                                   z.size, add);
        }
        for (ptrdiff_t j = values_at(a); j < width; j++)
            set_or_add(&dx[row * width + j], dy[row * width + j], add);
    }
}

/* dg[j] = the sum over all positions, and vectors first <= i < end of each, of dy[j] x[j] rrms */
static void scale_gradient(real *dg, const real *dy, const real *x, const real *rrms, int n,
                           Attention a, QkVectors v, int first, int end, bool add) {
    const int size = vector_of(v, first, NULL, NULL).size;
    for (int j = 0; j < size; j++) {
        double sum = 0;
        for (ptrdiff_t row = 0; row < n; row++)
            for (int i = first; i < end; i++) {
                const ptrdiff_t at = row * width_of(a) + vector_of(v, i, NULL, NULL).at + j;
                sum += (double)dy[at] * x[at] * rrms[row * (v.q + v.k) + i];
            }
        set_or_add(&dg[j], sum, add);
    }
}

void qknorm_weight_gradient(real *dgq, real *dgk, const real *dy, const real *x, const real *rrms,
                            int n, Attention a, bool whole, bool add_q, bool add_k) {
    const QkVectors v = qk_vectors(a, whole);
    if (dgq) scale_gradient(dgq, dy, x, rrms, n, a, v, 0, v.q, add_q);
    if (dgk) scale_gradient(dgk, dy, x, rrms, n, a, v, v.q, v.q + v.k, add_k);
}
