/* The linear layer and its gradients: three matrix products (Rumelhart, Hinton, Williams 1986). */
#include "plain.h"

/* y[n][o] = sum_c x[n][c] w[o][c] + b[o] */
void linear_forward(real *y, const real *x, const real *w, const real *b, int n, int c, int o) {
    for (ptrdiff_t row = 0; row < n; row++)
        for (ptrdiff_t out = 0; out < o; out++) {
            double sum = b ? b[out] : 0;
            for (ptrdiff_t in = 0; in < c; in++) sum += (double)x[row * c + in] * w[out * c + in];
            y[row * o + out] = (real)sum;
        }
}

/* dx[n][c] = sum_o dy[n][o] w[o][c] */
void linear_input_gradient(real *dx, const real *dy, const real *w, int n, int c, int o, bool add) {
    for (ptrdiff_t row = 0; row < n; row++)
        for (ptrdiff_t in = 0; in < c; in++) {
            double sum = 0;
            for (ptrdiff_t out = 0; out < o; out++)
                sum += (double)dy[row * o + out] * w[out * c + in];
            set_or_add(&dx[row * c + in], sum, add);
        }
}

/* dw[o][c] = sum_n dy[n][o] x[n][c] */
void linear_weight_gradient(real *dw, const real *dy, const real *x, int n, int c, int o,
                            bool add) {
    for (ptrdiff_t out = 0; out < o; out++)
        for (ptrdiff_t in = 0; in < c; in++) {
            double sum = 0;
            for (ptrdiff_t row = 0; row < n; row++)
                sum += (double)dy[row * o + out] * x[row * c + in];
            set_or_add(&dw[out * c + in], sum, add);
        }
}

/* db[c] = sum_n dy[n][c] */
void bias_gradient(real *db, const real *dy, int n, int c, bool add) {
    for (ptrdiff_t j = 0; j < c; j++) {
        double sum = 0;
        for (ptrdiff_t row = 0; row < n; row++) sum += dy[row * c + j];
        set_or_add(&db[j], sum, add);
    }
}
