/* Elementwise ops: relu, gelu, SwiGLU, addition. */
#include "../ops/ops.h"
#include "vector_math.h"

/* ---- relu ---- */

/* NaN passes through, so that a training that breaks down is noticed. */
void fast_relu_forward(real *y, const real *x, size_t count) {
#pragma omp parallel for simd if (parallel : count > WORTH_THREADS)
    for (size_t i = 0; i < count; i++) y[i] = x[i] <= 0 ? 0 : x[i];
}

void fast_relu_input_gradient(real *dx, const real *dy, const real *y, size_t count, bool add) {
#pragma omp parallel for simd if (parallel : count > WORTH_THREADS)
    for (size_t i = 0; i < count; i++) {
        const real d = y[i] <= 0 ? 0 : dy[i];
        dx[i] = add ? dx[i] + d : d;
    }
}

/* ---- gelu ---- */

/* With u = sqrt(2/pi) (x + 0.044715 x^3), 1/2 (1 + tanh u) is sigmoid(2u): gelu is x sigmoid(2u),
 * which does not cancel where tanh is near -1. */
#define ROOT (real)1.5957691216057308 /* 2 sqrt(2/pi) */
#define CUBE (real)0.044715

INLINE vec gelu_sigmoid(vec x, vec *complement) {
    return vec_sigmoid(x * (x * x * (ROOT * CUBE) + ROOT), complement);
}

void fast_gelu_forward(real *y, const real *x, size_t count) {
#pragma omp parallel for if (count > WORTH_THREADS)
    for (size_t i = 0; i < count; i += LANES) {
        const ptrdiff_t left = (ptrdiff_t)(count - i);
        vec complement, v = vec_load_part(x + i, left, 0);
        vec_store_part(y + i, v * gelu_sigmoid(v, &complement), left);
    }
}

/* dx = dy (s + x s (1 - s) 2u'), s = sigmoid(2u) */
void fast_gelu_input_gradient(real *dx, const real *dy, const real *x, size_t count, bool add) {
#pragma omp parallel for if (count > WORTH_THREADS)
    for (size_t i = 0; i < count; i += LANES) {
        const ptrdiff_t left = (ptrdiff_t)(count - i);
        vec complement, v = vec_load_part(x + i, left, 0);
        vec s = gelu_sigmoid(v, &complement);
        /* Beyond 20 s or its complement is 0, and 0 times an infinite slope would be NaN. */
        vec square = vec_select(v * v > 400, vec_all(400), v * v);
        vec slope = square * (3 * ROOT * CUBE) + ROOT;
        vec d = vec_load_part(dy + i, left, 0) * (s + v * s * complement * slope);
        if (add) d += vec_load_part(dx + i, left, 0);
        vec_store_part(dx + i, d, left);
    }
}

/* ---- SwiGLU: silu(gate) * up, silu(g) = g sigmoid(g) ---- */

void fast_swiglu_forward(real *y, const real *x, int n, int f) {
#pragma omp parallel for if ((ptrdiff_t)n * f > WORTH_THREADS)
    for (ptrdiff_t row = 0; row < n; row++) {
        const real *gate = x + row * 2 * f, *up = gate + f;
        for (int i = 0; i < f; i += LANES) {
            vec complement, v = vec_load_part(gate + i, f - i, 0);
            vec silu = v * vec_sigmoid(v, &complement);
            vec_store_part(y + row * f + i, silu * vec_load_part(up + i, f - i, 0), f - i);
        }
    }
}

/* dgate = dy up s (1 + gate (1 - s)), dup = dy silu(gate), s = sigmoid(gate) */
static void swiglu_gradient_row(real *dx, const real *dy, const real *x, int f, bool add) {
    for (int i = 0; i < f; i += LANES) {
        const int left = f - i;
        vec complement, gate = vec_load_part(x + i, left, 0);
        vec s = vec_sigmoid(gate, &complement), d = vec_load_part(dy + i, left, 0);
        vec dgate = d * vec_load_part(x + f + i, left, 0) * s * (1 + gate * complement);
        vec dup = d * (gate * s);
        if (add) {
            dgate += vec_load_part(dx + i, left, 0);
            dup += vec_load_part(dx + f + i, left, 0);
        }
        vec_store_part(dx + i, dgate, left);
        vec_store_part(dx + f + i, dup, left);
    }
}

void fast_swiglu_input_gradient(real *dx, const real *dy, const real *x, int n, int f, bool add) {
#pragma omp parallel for if ((ptrdiff_t)n * f > WORTH_THREADS)
    for (ptrdiff_t row = 0; row < n; row++)
        swiglu_gradient_row(dx + row * 2 * f, dy + row * f, x + row * 2 * f, f, add);
}

/* ---- addition ---- */

/* y may be a or b: element i depends on elements i alone. */
void fast_add_forward(real *y, const real *a, const real *b, size_t count) {
#pragma omp parallel for simd if (parallel : count > WORTH_THREADS)
    for (size_t i = 0; i < count; i++) y[i] = a[i] + b[i];
}

void fast_add_input_gradient(real *dx, const real *dy, size_t count, bool add) {
#pragma omp parallel for simd if (parallel : count > WORTH_THREADS)
    for (size_t i = 0; i < count; i++) dx[i] = add ? dx[i] + dy[i] : dy[i];
}
