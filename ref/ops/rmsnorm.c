/* Root mean square normalisation over the channels of each row (Zhang & Sennrich 2019, eq. 4). */
#include <math.h>

#include "plain.h"

/* y[n][c] = g[c] x[n][c] rrms[n],  rrms = 1 / sqrt(mean(x^2) + eps) */
void rmsnorm_forward(real *y, real *rrms, const real *x, const real *g, int n, int c, double eps) {
    for (ptrdiff_t row = 0; row < n; row++) {
        const real *in = x + row * c;
        double squares = 0;
        for (int j = 0; j < c; j++) squares += (double)in[j] * in[j];
        const double r = 1 / sqrt(squares / c + eps);
        for (int j = 0; j < c; j++) y[row * c + j] = (real)(g[j] * (in[j] * r));
        rrms[row] = (real)r;
    }
}

/* dx = rrms (d - xhat mean(d xhat)),  d = dy g,  xhat = x rrms */
void rmsnorm_input_gradient(real *dx, const real *dy, const real *x, const real *g,
                            const real *rrms, int n, int c, bool add) {
    for (ptrdiff_t row = 0; row < n; row++) {
        const real *in = x + row * c, *dout = dy + row * c;
        const double r = rrms[row];
        double product = 0;
        for (int j = 0; j < c; j++) product += (double)dout[j] * g[j] * in[j] * r;
        for (int j = 0; j < c; j++) {
            const double d = (double)dout[j] * g[j], xhat = in[j] * r;
            set_or_add(&dx[row * c + j], r * (d - xhat * product / c), add);
        }
    }
}

/* dg[c] = sum_n dy[n][c] xhat[n][c] */
void rmsnorm_weight_gradient(real *dg, const real *dy, const real *x, const real *rrms, int n,
                             int c, bool add) {
    for (ptrdiff_t j = 0; j < c; j++) {
        double sum = 0;
        for (ptrdiff_t row = 0; row < n; row++)
            sum += (double)dy[row * c + j] * x[row * c + j] * rrms[row];
        set_or_add(&dg[j], sum, add);
    }
}
