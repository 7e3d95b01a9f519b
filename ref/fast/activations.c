/* Elementwise ops: relu, gelu, SwiGLU, addition. */
#include "fast.h"
#include "rows.h"
#include "vector_math.h"

/* ---- relu ---- */

/* NaN passes through, so that a training that breaks down is noticed. */
void fast_relu_forward(real *y, const real *x, size_t count) {
#pragma omp parallel for simd if (parallel : count > WORTH_THREADS)
    for (size_t i = 0; i < count; i++) y[i] = x[i] <= 0 ? 0 : x[i];
}

void fast_relu_input_gradient(real *dx, const real *dy, const real *y, size_t count, bool add) {
    if (add) {
#pragma omp parallel for simd if (parallel : count > WORTH_THREADS)
        for (size_t i = 0; i < count; i++) dx[i] += y[i] <= 0 ? 0 : dy[i];
    } else {
#pragma omp parallel for simd if (parallel : count > WORTH_THREADS)
        for (size_t i = 0; i < count; i++) dx[i] = y[i] <= 0 ? 0 : dy[i];
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
        vec complement, v = vec_load_part(x + i, count - i, 0);
        vec_store_part(y + i, v * gelu_sigmoid(v, &complement), count - i);
    }
}

/* dx = dy (s + x s (1 - s) 2u'), s = sigmoid(2u) */
void fast_gelu_input_gradient(real *dx, const real *dy, const real *x, size_t count, bool add) {
#pragma omp parallel for if (count > WORTH_THREADS)
    for (size_t i = 0; i < count; i += LANES) {
        vec complement, v = vec_load_part(x + i, count - i, 0);
        vec s = gelu_sigmoid(v, &complement);
        vec slope = v * v * (3 * ROOT * CUBE) + ROOT;
        vec d = vec_load_part(dy + i, count - i, 0) * (s + v * s * complement * slope);
        if (add) d += vec_load_part(dx + i, count - i, 0);
        vec_store_part(dx + i, d, count - i);
    }
}

/* ---- SwiGLU: silu(gate) * up, silu(g) = g sigmoid(g) ---- */

void fast_swiglu_forward(real *y, const real *x, int n, int f) {
    const size_t width = (size_t)f;
#pragma omp parallel for if ((size_t)n * width > WORTH_THREADS)
    for (int row = 0; row < n; row++) {
        const real *gate = x + (size_t)row * 2 * width, *up = gate + width;
        real *out = y + (size_t)row * width;
        for (size_t i = 0; i < width; i += LANES) {
            vec complement, v = vec_load_part(gate + i, width - i, 0);
            vec silu = v * vec_sigmoid(v, &complement);
            vec_store_part(out + i, silu * vec_load_part(up + i, width - i, 0), width - i);
        }
    }
}

/* dgate = dy up s (1 + gate (1 - s)), dup = dy silu(gate), s = sigmoid(gate) */
static void swiglu_gradient_row(real *dx, const real *dy, const real *x, size_t width, bool add) {
    for (size_t i = 0; i < width; i += LANES) {
        const size_t left = width - i;
        vec complement, gate = vec_load_part(x + i, left, 0);
        vec s = vec_sigmoid(gate, &complement), d = vec_load_part(dy + i, left, 0);
        vec dgate = d * vec_load_part(x + width + i, left, 0) * s * (1 + gate * complement);
        vec dup = d * (gate * s);
        if (add) {
            dgate += vec_load_part(dx + i, left, 0);
            dup += vec_load_part(dx + width + i, left, 0);
        }
        vec_store_part(dx + i, dgate, left);
        vec_store_part(dx + width + i, dup, left);
    }
}

void fast_swiglu_input_gradient(real *dx, const real *dy, const real *x, int n, int f, bool add) {
    const size_t width = (size_t)f;
#pragma omp parallel for if ((size_t)n * width > WORTH_THREADS)
    for (int row = 0; row < n; row++) {
        const size_t at = (size_t)row * width;
        swiglu_gradient_row(dx + 2 * at, dy + at, x + 2 * at, width, add);
    }
}

/* ---- addition ---- */

/* y may be a or b: element i depends on elements i alone. */
void fast_add_forward(real *y, const real *a, const real *b, size_t count) {
#pragma omp parallel for simd if (parallel : count > WORTH_THREADS)
    for (size_t i = 0; i < count; i++) y[i] = a[i] + b[i];
}

void fast_add_input_gradient(real *dx, const real *dy, size_t count, bool add) {
    if (add) {
        fast_add_forward(dx, dx, dy, count);
        return;
    }
#pragma omp parallel for simd if (parallel : count > WORTH_THREADS)
    for (size_t i = 0; i < count; i++) dx[i] = dy[i];
}
