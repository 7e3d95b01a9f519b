/* Layer normalisation over the channels of each row (Ba, Kiros, Hinton 2016, eq. 4). */
#include <math.h>

#include "plain.h"

/* y[n][c] = g[c] (x[n][c] - mean[n]) rstd[n] + b[c],  rstd = 1 / sqrt(variance + eps) */
void layernorm_forward(real *y, real *mean, real *rstd, const real *x, const real *g, const real *b,
                       int n, int c, double eps) {
    for (ptrdiff_t row = 0; row < n; row++) {
        const real *in = x + row * c;
        double sum = 0, squares = 0;
        for (int j = 0; j < c; j++) sum += in[j];
        const double m = sum / c;
        for (int j = 0; j < c; j++) squares += (in[j] - m) * (in[j] - m);
        const double r = 1 / sqrt(squares / c + eps);
        for (int j = 0; j < c; j++) y[row * c + j] = (real)(g[j] * (in[j] - m) * r + b[j]);
        mean[row] = (real)m;
        rstd[row] = (real)r;
    }
}

/* dx = rstd (d - mean(d) - xhat mean(d xhat)),  d = dy g,  xhat = (x - mean) rstd */
void layernorm_input_gradient(real *dx, const real *dy, const real *x, const real *g,
                              const real *mean, const real *rstd, int n, int c, bool add) {
    for (ptrdiff_t row = 0; row < n; row++) {
        const real *in = x + row * c, *dout = dy + row * c;
        const double m = mean[row], r = rstd[row];
        double sum = 0, product = 0;
        for (int j = 0; j < c; j++) {
            const double d = (double)dout[j] * g[j];
            sum += d;
            product += d * (in[j] - m) * r;
        }
        for (int j = 0; j < c; j++) {
            const double d = (double)dout[j] * g[j], xhat = (in[j] - m) * r;
            set_or_add(&dx[row * c + j], r * (d - sum / c - xhat * product / c), add);
        }
    }
}

/* dg[c] = sum_n dy[n][c] xhat[n][c] */
void layernorm_weight_gradient(real *dg, const real *dy, const real *x, const real *mean,
                               const real *rstd, int n, int c, bool add) {
    for (ptrdiff_t j = 0; j < c; j++) {
        double sum = 0;
        for (ptrdiff_t row = 0; row < n; row++) {
            const double xhat = ((double)x[row * c + j] - mean[row]) * rstd[row];
            sum += dy[row * c + j] * xhat;
        }
        set_or_add(&dg[j], sum, add);
    }
}
