/* Root mean square normalisation over the channels of each row (Zhang & Sennrich 2019, eq. 4). */
#include <math.h>

#include "fast.h"
#include "rows.h"
#include "vector_math.h"

static void forward_row(real *y, real *rrms, const real *x, const real *g, size_t c, double eps) {
    vec squares = {0};
    for (size_t j = 0; j < c; j += LANES) {
        vec v = vec_load_part(x + j, c - j, 0);
        squares += v * v;
    }
    const real r = (real)(1 / sqrt((double)vec_sum(squares) / (double)c + eps));
    for (size_t j = 0; j < c; j++) y[j] = x[j] * r * g[j];
    *rrms = r;
}

void fast_rmsnorm_forward(real *y, real *rrms, const real *x, const real *g, int n, int c,
                          double eps) {
    const size_t width = (size_t)c;
#pragma omp parallel for if ((size_t)n * width > WORTH_THREADS)
    for (int row = 0; row < n; row++) {
        const size_t at = (size_t)row * width;
        forward_row(y + at, rrms + row, x + at, g, width, eps);
    }
}

/* dx = rrms (dxhat - xhat mean(dxhat xhat)), dxhat = dy g, xhat = x rrms */
static void gradient_row(real *restrict dx, const real *restrict dy, const real *restrict x,
                         const real *restrict g, real rrms, size_t c, bool add) {
    vec product = {0};
    for (size_t j = 0; j < c; j += LANES)
        product += vec_load_part(dy + j, c - j, 0) * vec_load_part(g + j, c - j, 0) *
                   vec_load_part(x + j, c - j, 0);
    const real slope = vec_sum(product) / (real)c * rrms * rrms;
    if (add)
        for (size_t j = 0; j < c; j++) dx[j] += rrms * (dy[j] * g[j] - x[j] * slope);
    else
        for (size_t j = 0; j < c; j++) dx[j] = rrms * (dy[j] * g[j] - x[j] * slope);
}

void fast_rmsnorm_input_gradient(real *dx, const real *dy, const real *x, const real *g,
                                 const real *rrms, int n, int c, bool add) {
    const size_t width = (size_t)c;
#pragma omp parallel for if ((size_t)n * width > WORTH_THREADS)
    for (int row = 0; row < n; row++) {
        const size_t at = (size_t)row * width;
        gradient_row(dx + at, dy + at, x + at, g, rrms[row], width, add);
    }
}

void fast_rmsnorm_weight_gradient(real *dg, const real *dy, const real *x, const real *rrms, int n,
                                  int c, bool add) {
    norm_scale_gradient(dg, dy, x, NULL, rrms, n, c, add);
}
