/* Layer normalisation over the channels of each row (Ba, Kiros, Hinton 2016), and without a mean,
 * which is root mean square normalisation (Zhang & Sennrich 2019, eq. 4), also of single queries
 * and keys.  `centred` is a constant wherever a row is done, so neither pays for the other. */
#include <math.h>
#include <string.h>

#include "../ops/ops.h"
#include "column_sums.h"
#include "vector_math.h"

/* Makes two passes over the row, which is in cache for the second, so that the variance does not
 * cancel.  Overwrites *mean if centred. */
INLINE void forward_row(real *y, real *mean, real *rstd, const real *x, const real *g,
                        const real *b, ptrdiff_t c, double eps, const bool centred) {
    vec sum = {0}, squares = {0};
    for (ptrdiff_t j = 0; centred && j < c; j += LANES) sum += vec_load_part(x + j, c - j, 0);
    const real m = centred ? vec_sum(sum) / (real)c : 0;
    for (ptrdiff_t j = 0; j < c; j += LANES) {
        vec d = vec_load_part(x + j, c - j, m) - m;
        squares += d * d;
    }
    const real r = (real)(1 / sqrt((double)vec_sum(squares) / (double)c + eps));
    for (ptrdiff_t j = 0; j < c; j++) {
        const real scaled = (x[j] - m) * r * g[j];
        y[j] = centred ? scaled + b[j] : scaled;
    }
    if (centred) *mean = m;
    *rstd = r;
}

void fast_layernorm_forward(real *y, real *mean, real *rstd, const real *x, const real *g,
                            const real *b, int n, int c, double eps) {
#pragma omp parallel for if ((ptrdiff_t)n * c > WORTH_THREADS)
    for (ptrdiff_t row = 0; row < n; row++)
        forward_row(y + row * c, mean + row, rstd + row, x + row * c, g, b, c, eps, true);
}

void fast_rmsnorm_forward(real *y, real *rrms, const real *x, const real *g, int n, int c,
                          double eps) {
#pragma omp parallel for if ((ptrdiff_t)n * c > WORTH_THREADS)
    for (ptrdiff_t row = 0; row < n; row++)
        forward_row(y + row * c, NULL, rrms + row, x + row * c, g, NULL, c, eps, false);
}

/* dx = rstd (d - mean(d) - xhat mean(d xhat)), where d = dy g; the second term only if centred. */
INLINE void gradient_row(real *restrict dx, const real *restrict dy, const real *restrict x,
                         const real *restrict g, real mean, real rstd, ptrdiff_t c, bool add,
                         const bool centred) {
    vec sum = {0}, product = {0};
    for (ptrdiff_t j = 0; j < c; j += LANES) {
        vec d = vec_load_part(dy + j, c - j, 0) * vec_load_part(g + j, c - j, 0);
        sum += d;
        product += d * (vec_load_part(x + j, c - j, 0) - mean);
    }
    const real average = centred ? vec_sum(sum) / (real)c : 0;
    const real slope = vec_sum(product) / (real)c * rstd * rstd;
    for (ptrdiff_t j = 0; j < c; j++) {
        const real d = rstd * (dy[j] * g[j] - average - (x[j] - mean) * slope);
        dx[j] = add ? dx[j] + d : d;
    }
}

void fast_layernorm_input_gradient(real *dx, const real *dy, const real *x, const real *g,
                                   const real *mean, const real *rstd, int n, int c, bool add) {
#pragma omp parallel for if ((ptrdiff_t)n * c > WORTH_THREADS)
    for (ptrdiff_t row = 0; row < n; row++)
        gradient_row(dx + row * c, dy + row * c, x + row * c, g, mean[row], rstd[row], c, add,
                     true);
}

void fast_rmsnorm_input_gradient(real *dx, const real *dy, const real *x, const real *g,
                                 const real *rrms, int n, int c, bool add) {
#pragma omp parallel for if ((ptrdiff_t)n * c > WORTH_THREADS)
    for (ptrdiff_t row = 0; row < n; row++)
        gradient_row(dx + row * c, dy + row * c, x + row * c, g, 0, rrms[row], c, add, false);
}

typedef struct {
    const real *dy, *x, *mean, *rstd;
    ptrdiff_t c;
} ScaleArguments;

static void sum_scale(double *sums, const void *arguments, int first, int end, int column,
                      int width) {
    const ScaleArguments *a = arguments;
    real acc[SUM_COLUMNS] = {0};
    for (ptrdiff_t row = first; row < end; row++) {
        const real *restrict dy = a->dy + row * a->c + column;
        const real *restrict x = a->x + row * a->c + column;
        const real mean = a->mean ? a->mean[row] : 0, r = a->rstd[row];
        for (int j = 0; j < width; j++) acc[j] += dy[j] * ((x[j] - mean) * r);
    }
    for (int j = 0; j < width; j++) sums[j] += (double)acc[j];
}

/* dg[c] = sum_n dy[n][c] (x[n][c] - mean[n]) rstd[n]; a NULL mean counts as 0. */
void fast_layernorm_weight_gradient(real *dg, const real *dy, const real *x, const real *mean,
                                    const real *rstd, int n, int c, bool add) {
    const ScaleArguments a = {dy, x, mean, rstd, c};
    const double *sums = column_sums(1, n, c, sum_scale, &a);
    for (int j = 0; j < c; j++) dg[j] = (real)sums[j] + (add ? dg[j] : 0);
}

void fast_rmsnorm_weight_gradient(real *dg, const real *dy, const real *x, const real *rrms, int n,
                                  int c, bool add) {
    fast_layernorm_weight_gradient(dg, dy, x, NULL, rrms, n, c, add);
}

/* ---- Queries and keys ---- */

/* Vector i of a position's queries and keys: where it begins, its length and its scale. */
typedef struct {
    ptrdiff_t at;
    int size;
    const real *g;
} QkVector;

static QkVector qk_vector(QkVectors v, int i, const real *gq, const real *gk) {
    if (i < v.q) return (QkVector){(ptrdiff_t)i * v.q_size, v.q_size, gq};
    return (QkVector){(ptrdiff_t)v.q * v.q_size + (ptrdiff_t)(i - v.q) * v.k_size, v.k_size, gk};
}

void fast_qknorm_forward(real *y, real *rrms, const real *x, const real *gq, const real *gk, int n,
                         Attention a, bool whole, double eps) {
    const QkVectors v = qk_vectors(a, whole);
    const ptrdiff_t values = (ptrdiff_t)(a.heads + a.groups) * a.d,
                    rest = (ptrdiff_t)a.groups * a.d;
#pragma omp parallel for if (n * (values + rest) > WORTH_THREADS)
    for (ptrdiff_t row = 0; row < n; row++) {
        const ptrdiff_t start = row * (values + rest);
        for (int i = 0; i < v.q + v.k; i++) {
            const QkVector z = qk_vector(v, i, gq, gk);
            forward_row(y + start + z.at, NULL, rrms + row * (v.q + v.k) + i, x + start + z.at, z.g,
                        NULL, z.size, eps, false);
        }
        memcpy(y + start + values, x + start + values, (size_t)rest * sizeof *y);
    }
}

void fast_qknorm_input_gradient(real *dx, const real *dy, const real *x, const real *gq,
                                const real *gk, const real *rrms, int n, Attention a, bool whole,
                                bool add) {
    const QkVectors v = qk_vectors(a, whole);
    const ptrdiff_t values = (ptrdiff_t)(a.heads + a.groups) * a.d,
                    rest = (ptrdiff_t)a.groups * a.d;
#pragma omp parallel for if (n * (values + rest) > WORTH_THREADS)
    for (ptrdiff_t row = 0; row < n; row++) {
        const ptrdiff_t start = row * (values + rest), end = start + values + rest;
        for (int i = 0; i < v.q + v.k; i++) {
            const QkVector z = qk_vector(v, i, gq, gk);
            gradient_row(dx + start + z.at, dy + start + z.at, x + start + z.at, z.g, 0,
                         rrms[row * (v.q + v.k) + i], z.size, add, false);
        }
        for (ptrdiff_t j = start + values; j < end; j++) dx[j] = add ? dx[j] + dy[j] : dy[j];
    }
}

/* Vectors [first, end) of each position. */
typedef struct {
    const real *dy, *x, *rrms;
    ptrdiff_t width;
    QkVectors vectors;
    int first, end;
} QkScaleArguments;

static void sum_qk_scale(double *sums, const void *arguments, int first, int end, int column,
                         int width) {
    const QkScaleArguments *a = arguments;
    const int count = a->vectors.q + a->vectors.k;
    for (ptrdiff_t row = first; row < end; row++)
        for (int i = a->first; i < a->end; i++) {
            const ptrdiff_t at = row * a->width + qk_vector(a->vectors, i, NULL, NULL).at + column;
            const real r = a->rrms[row * count + i];
            for (int j = 0; j < width; j++) sums[j] += (double)(a->dy[at + j] * (a->x[at + j] * r));
        }
}

static void qk_scale_gradient(real *dg, int n, const QkScaleArguments *a, bool add) {
    const int size = qk_vector(a->vectors, a->first, NULL, NULL).size;
    const double *sums = column_sums(1, n, size, sum_qk_scale, a);
    for (int j = 0; j < size; j++) dg[j] = (real)sums[j] + (add ? dg[j] : 0);
}

void fast_qknorm_weight_gradient(real *dgq, real *dgk, const real *dy, const real *x,
                                 const real *rrms, int n, Attention a, bool whole, bool add_q,
                                 bool add_k) {
    const QkVectors v = qk_vectors(a, whole);
    QkScaleArguments arguments = {.dy = dy,
                                  .x = x,
                                  .rrms = rrms,
                                  .width = (ptrdiff_t)(a.heads + 2 * a.groups) * a.d,
                                  .vectors = v,
                                  .first = 0,
                                  .end = v.q};
    if (dgq) qk_scale_gradient(dgq, n, &arguments, add_q);
    arguments.first = v.q;
    arguments.end = v.q + v.k;
    if (dgk) qk_scale_gradient(dgk, n, &arguments, add_k);
}
