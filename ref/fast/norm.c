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
                        const real *b, size_t c, double eps, const bool centred) {
    vec sum = {0}, squares = {0};
    if (centred)
        for (size_t j = 0; j < c; j += LANES) sum += vec_load_part(x + j, c - j, 0);
    const real m = centred ? vec_sum(sum) / (real)c : 0;
    for (size_t j = 0; j < c; j += LANES) {
        vec d = vec_load_part(x + j, c - j, m) - m;
        squares += d * d;
    }
    const real r = (real)(1 / sqrt((double)vec_sum(squares) / (double)c + eps));
    for (size_t j = 0; j < c; j++) {
        const real scaled = (x[j] - m) * r * g[j];
        y[j] = centred ? scaled + b[j] : scaled;
    }
    if (centred) *mean = m;
    *rstd = r;
}

void fast_layernorm_forward(real *y, real *mean, real *rstd, const real *x, const real *g,
                            const real *b, int n, int c, double eps) {
    const size_t width = (size_t)c;
#pragma omp parallel for if ((size_t)n * width > WORTH_THREADS)
    for (int row = 0; row < n; row++) {
        const size_t at = (size_t)row * width;
        forward_row(y + at, mean + row, rstd + row, x + at, g, b, width, eps, true);
    }
}

void fast_rmsnorm_forward(real *y, real *rrms, const real *x, const real *g, int n, int c,
                          double eps) {
    const size_t width = (size_t)c;
#pragma omp parallel for if ((size_t)n * width > WORTH_THREADS)
    for (int row = 0; row < n; row++) {
        const size_t at = (size_t)row * width;
        forward_row(y + at, NULL, rrms + row, x + at, g, NULL, width, eps, false);
    }
}

/* dx = rstd (dxhat - mean(dxhat) - xhat mean(dxhat xhat)), dxhat = dy g; the second term only if
 * centred. */
INLINE void gradient_row(real *restrict dx, const real *restrict dy, const real *restrict x,
                         const real *restrict g, real mean, real rstd, size_t c, bool add,
                         const bool centred) {
    vec sum = {0}, product = {0};
    for (size_t j = 0; j < c; j += LANES) {
        vec d = vec_load_part(dy + j, c - j, 0) * vec_load_part(g + j, c - j, 0);
        sum += d;
        product += d * (vec_load_part(x + j, c - j, 0) - mean);
    }
    const real average = centred ? vec_sum(sum) / (real)c : 0;
    const real slope = vec_sum(product) / (real)c * rstd * rstd;
    if (add)
        for (size_t j = 0; j < c; j++)
            dx[j] += rstd * (dy[j] * g[j] - average - (x[j] - mean) * slope);
    else
        for (size_t j = 0; j < c; j++)
            dx[j] = rstd * (dy[j] * g[j] - average - (x[j] - mean) * slope);
}

void fast_layernorm_input_gradient(real *dx, const real *dy, const real *x, const real *g,
                                   const real *mean, const real *rstd, int n, int c, bool add) {
    const size_t width = (size_t)c;
#pragma omp parallel for if ((size_t)n * width > WORTH_THREADS)
    for (int row = 0; row < n; row++) {
        const size_t at = (size_t)row * width;
        gradient_row(dx + at, dy + at, x + at, g, mean[row], rstd[row], width, add, true);
    }
}

void fast_rmsnorm_input_gradient(real *dx, const real *dy, const real *x, const real *g,
                                 const real *rrms, int n, int c, bool add) {
    const size_t width = (size_t)c;
#pragma omp parallel for if ((size_t)n * width > WORTH_THREADS)
    for (int row = 0; row < n; row++) {
        const size_t at = (size_t)row * width;
        gradient_row(dx + at, dy + at, x + at, g, 0, rrms[row], width, add, false);
    }
}

typedef struct {
    const real *dy, *x, *mean, *r;
    size_t c;
} ScaleArguments;

static void sum_scale(double *sums, const void *arguments, int first, int end, int column,
                      int width) {
    const ScaleArguments *a = arguments;
    real acc[SUM_COLUMNS] = {0};
    for (int row = first; row < end; row++) {
        const real *restrict dy = a->dy + (size_t)row * a->c + (size_t)column;
        const real *restrict x = a->x + (size_t)row * a->c + (size_t)column;
        const real mean = a->mean ? a->mean[row] : 0, r = a->r[row];
        for (int j = 0; j < width; j++) acc[j] += dy[j] * ((x[j] - mean) * r);
    }
    for (int j = 0; j < width; j++) sums[j] += (double)acc[j];
}

/* dg[c] = sum_n dy[n][c] (x[n][c] - mean[n]) r[n].  A NULL mean counts as 0. */
static void scale_gradient(real *dg, const real *dy, const real *x, const real *mean, const real *r,
                           int n, int c, bool add) {
    const ScaleArguments a = {dy, x, mean, r, (size_t)c};
    for (int column = 0; column < c; column += SUM_WIDTH) {
        const int width = c - column < SUM_WIDTH ? c - column : SUM_WIDTH;
        double totals[SUM_WIDTH];
        rows_sum(totals, 1, n, column, width, sum_scale, &a);
        for (int j = 0; j < width; j++)
            dg[column + j] = (real)totals[j] + (add ? dg[column + j] : 0);
    }
}

void fast_layernorm_weight_gradient(real *dg, const real *dy, const real *x, const real *mean,
                                    const real *rstd, int n, int c, bool add) {
    scale_gradient(dg, dy, x, mean, rstd, n, c, add);
}

void fast_rmsnorm_weight_gradient(real *dg, const real *dy, const real *x, const real *rrms, int n,
                                  int c, bool add) {
    scale_gradient(dg, dy, x, NULL, rrms, n, c, add);
}
