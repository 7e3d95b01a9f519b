/* Elementwise ops: relu, gelu, SwiGLU, addition. */
#include <math.h>

#include "plain.h"

/* ---- relu: max(x, 0) (Nair & Hinton 2010); NaN passes through, forward and backward ---- */

void relu_forward(real *y, const real *x, size_t count) {
    for (size_t i = 0; i < count; i++) y[i] = x[i] <= 0 ? 0 : x[i];
}

void relu_input_gradient(real *dx, const real *dy, const real *y, size_t count, bool add) {
    for (size_t i = 0; i < count; i++) set_or_add(&dx[i], y[i] <= 0 ? 0 : dy[i], add);
}

/* ---- gelu: x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3) (Hendrycks & Gimpel 2016) ---- */

static const double SQRT_2_OVER_PI = 0.7978845608028654;

void gelu_forward(real *y, const real *x, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const double v = x[i], u = SQRT_2_OVER_PI * (v + 0.044715 * v * v * v);
        y[i] = (real)(v / 2 * (1 + tanh(u)));
    }
}

/* dx = dy (1/2 (1 + tanh u) + x/2 (1 - tanh^2 u) du/dx) */
void gelu_input_gradient(real *dx, const real *dy, const real *x, size_t count, bool add) {
    for (size_t i = 0; i < count; i++) {
        const double v = x[i], t = tanh(SQRT_2_OVER_PI * (v + 0.044715 * v * v * v));
        const double slope = SQRT_2_OVER_PI * (1 + 3 * 0.044715 * v * v);
        set_or_add(&dx[i], dy[i] * ((1 + t) / 2 + v / 2 * (1 - t * t) * slope), add);
    }
}

/* ---- SwiGLU: silu(gate) up, silu(x) = x s(x), s(x) = 1 / (1 + e^-x) (Shazeer 2020, eq. 5) ---- */

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

void swiglu_forward(real *y, const real *x, int n, int f) {
    for (ptrdiff_t row = 0; row < n; row++)
        for (ptrdiff_t j = 0; j < f; j++) {
            const double gate = x[row * 2 * f + j], up = x[row * 2 * f + f + j];
            y[row * f + j] = (real)(gate * sigmoid(gate) * up);
        }
}

/* dgate = dy up s (1 + gate (1 - s)),  dup = dy gate s;  1 - s(x) = s(-x) */
void swiglu_input_gradient(real *dx, const real *dy, const real *x, int n, int f, bool add) {
    for (ptrdiff_t row = 0; row < n; row++)
        for (ptrdiff_t j = 0; j < f; j++) {
            const ptrdiff_t g = row * 2 * f + j, u = g + f;
            const double gate = x[g], s = sigmoid(gate), d = dy[row * f + j];
            set_or_add(&dx[g], d * x[u] * s * (1 + gate * sigmoid(-gate)), add);
            set_or_add(&dx[u], d * gate * s, add);
        }
}

/* ---- addition ---- */

void add_forward(real *y, const real *a, const real *b, size_t count) {
    for (size_t i = 0; i < count; i++) y[i] = a[i] + b[i];
}

void add_input_gradient(real *dx, const real *dy, size_t count, bool add) {
    for (size_t i = 0; i < count; i++) set_or_add(&dx[i], dy[i], add);
}
