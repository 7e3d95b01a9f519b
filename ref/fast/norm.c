/* Layer normalisation over the channels of each row (Ba, Kiros, Hinton 2016), and without a mean,
 * which is root mean square normalisation (Zhang & Sennrich 2019, eq. 4).  `centred` is a constant
 * wherever a row is done, so neither pays for the other. */
#include <math.h>

#include "fast.h"
#include "rows.h"
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
    const double *sums = rows_sum(1, n, c, sum_scale, &a);
    for (int j = 0; j < c; j++) dg[j] = (real)sums[j] + (add ? dg[j] : 0);
}

void fast_rmsnorm_weight_gradient(real *dg, const real *dy, const real *x, const real *rrms, int n,
                                  int c, bool add) {
    fast_layernorm_weight_gradient(dg, dy, x, NULL, rrms, n, c, add);
}
