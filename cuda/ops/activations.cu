/* Elementwise ops: relu, gelu, SwiGLU, addition.  Memory traffic alone sets their time.
 *
 * An op is a struct with `binary`, whether it has a second input, and `at(a, b)`, its value for one
 * element.  It uses fmaf and no other a * b + c, so that the compiler has nothing to contract and
 * an element has the same bits in every version. */
#include "common.cuh"

enum { THREADS = 256, PACKS = 2 };

/* ---- walking an array ---- */

/* y = op(a, b), or y += op(a, b).  Version 1 has V = 1.  In version 2 each load and store moves 128
 * bits, so that there are a quarter or an eighth as many and the index arithmetic is shared.  A
 * thread loads two such packs of each array before it uses the first.  All its loads come before
 * its stores, so that y may be a or b.  The last block also handles the few values beyond the last
 * pack. */
template <typename Op, typename T, int V>
static __global__ void map_packs(T *y, const T *a, const T *b, size_t count, bool add) {
    const size_t packs = count / V, first = (size_t)blockIdx.x * THREADS * PACKS + threadIdx.x;
    Pack<T, V> p[PACKS], q[PACKS], old[PACKS];
    each_of<PACKS>(first, (size_t)THREADS, packs, [&](int k, size_t i) {
        p[k] = load_pack<V>(a + i * V);
        if (Op::binary) q[k] = load_pack<V>(b + i * V);
        if (add) old[k] = load_pack<V>(y + i * V);
    });
    each_of<PACKS>(first, (size_t)THREADS, packs, [&](int k, size_t i) {
        float left[V], right[V] = {}, sum[V] = {};
        unpack(left, p[k]);
        if (Op::binary) unpack(right, q[k]);
        if (add) unpack(sum, old[k]);
#pragma unroll
        for (int j = 0; j < V; j++) {
            const float value = Op::at(left[j], right[j]);
            left[j] = add ? __fadd_rn(sum[j], value) : value;
        }
        store_floats(y + i * V, left);
    });
    const size_t i = packs * V + threadIdx.x;
    if (blockIdx.x + 1 < gridDim.x || i >= count) return;
    put(y + i, Op::at(to_float(a[i]), Op::binary ? to_float(b[i]) : 0), add);
}

/* y = op(a, b) for count values; b is NULL for an op of one input. */
template <typename Op>
static void map(const Run *run, void *y, const void *a, const void *b, size_t count, bool add) {
    WITH_VALUE_PACKS(run, T, V, run->version != 1 && packable(0, V, y, a, b),
                     LAUNCH((map_packs<Op, T, V>), grid_blocks(count, THREADS * PACKS * V), THREADS,
                            0, run->stream, (T *)y, (const T *)a, (const T *)b, count, add));
}

/* ---- relu ---- */

struct Relu {
    static constexpr bool binary = false;
    /* NaN passes through. */
    static DEVICE float at(float x, float) { return x <= 0 ? 0 : x; }
};
struct ReluGradient {
    static constexpr bool binary = true;
    static DEVICE float at(float dy, float y) { return y <= 0 ? 0 : dy; }
};

void cuda_relu_forward(const Call *k) {
    map<Relu>(k->run, k->io->y, k->io->x, NULL, k->count, false);
}
void cuda_relu_input_gradient(const Call *k) {
    map<ReluGradient>(k->run, k->io->dx, k->io->dy, k->io->y, k->count, k->io->add_dx);
}

/* ---- gelu ---- */

/* Returns s = 1 / (1 + e^-x) and sets `complement` to 1 - s, which a subtraction would lose where s
 * is near 1.  Below -80 e^-x would soon overflow, and s is 0: a large x times what is left of it,
 * 1e-35, would be no small number.  NaN stays NaN, because the comparison is false. */
static DEVICE float sigmoid(float x, float *complement) {
    const float e = expf(-(x < -80.0f ? -80.0f : x));
    const float s = __frcp_rn(1.0f + e);
    *complement = e * s;
    return x < -80.0f ? 0.0f : s;
}

/* With u = sqrt(2/pi) (x + 0.044715 x^3), 1/2 (1 + tanh u) is sigmoid(2u): gelu is x sigmoid(2u),
 * which does not cancel where tanh is near -1. */
static constexpr float ROOT = 1.5957691216057308f; /* 2 sqrt(2/pi) */
static constexpr float CUBE = 0.044715f;

static DEVICE float gelu_sigmoid(float x, float *complement) {
    return sigmoid(x * fmaf(x * x, ROOT * CUBE, ROOT), complement);
}

struct Gelu {
    static constexpr bool binary = false;
    static DEVICE float at(float x, float) {
        float complement;
        return x * gelu_sigmoid(x, &complement);
    }
};
/* dx = dy (s + x s (1 - s) 2u'), s = sigmoid(2u) */
struct GeluGradient {
    static constexpr bool binary = true;
    static DEVICE float at(float dy, float x) {
        float complement;
        const float s = gelu_sigmoid(x, &complement);
        /* Beyond 20 s or its complement is 0, and 0 times an infinite slope would be NaN. */
        const float square = x * x > 400.0f ? 400.0f : x * x;
        const float slope = fmaf(square, 3 * ROOT * CUBE, ROOT);
        return dy * fmaf(x * s * complement, slope, s);
    }
};

void cuda_gelu_forward(const Call *k) {
    map<Gelu>(k->run, k->io->y, k->io->x, NULL, k->count, false);
}
void cuda_gelu_input_gradient(const Call *k) {
    map<GeluGradient>(k->run, k->io->dx, k->io->dy, k->io->x, k->count, k->io->add_dx);
}

/* ---- addition ---- */

struct Add {
    static constexpr bool binary = true;
    static DEVICE float at(float a, float b) { return __fadd_rn(a, b); }
};
struct Copy {
    static constexpr bool binary = false;
    static DEVICE float at(float a, float) { return a; }
};

void cuda_add_forward(const Call *k) {
    map<Add>(k->run, k->io->y, k->io->x, k->io->skip, k->count, false);
}
void cuda_add_input_gradient(const Call *k) {
    const DeviceIO &io = *k->io;
    if (io.dskip) map<Copy>(k->run, io.dskip, io.dy, NULL, k->count, io.add_dskip);
    if (io.dx) map<Copy>(k->run, io.dx, io.dy, NULL, k->count, io.add_dx);
}

/* ---- SwiGLU: silu(gate) * up, silu(g) = g sigmoid(g) ---- */

/* Where pack i begins in y, and its values of gate and up in x: a row of x has f values of gate,
 * then f of up. */
struct SwigluPlace {
    size_t y, gate, up;
};

/* It divides 32-bit numbers where they suffice, because a 64-bit division takes four times the
 * instructions. */
template <int V>
static DEVICE SwigluPlace swiglu_place(size_t i, size_t packs, unsigned row_packs) {
    const size_t row = packs >> 32 ? i / row_packs : (unsigned)i / row_packs;
    const size_t f = (size_t)row_packs * V, column = (i - row * row_packs) * V;
    const size_t gate = row * 2 * f + column;
    return {row * f + column, gate, gate + f};
}

/* Each thread computes V neighbouring values of a row.  Version 1 has V = 1, version 2 has V = 128
 * bits for the reasons above (a thread loads two packs, and up to five for the gradient). */
template <typename T, int V>
static __global__ void swiglu(T *y, const T *x, size_t packs, unsigned row_packs) {
    const size_t i = grid_thread();
    if (i >= packs) return;
    const SwigluPlace at = swiglu_place<V>(i, packs, row_packs);
    float gate[V], up[V], complement;
    load_floats(gate, x + at.gate);
    load_floats(up, x + at.up);
#pragma unroll
    for (int j = 0; j < V; j++) up[j] *= gate[j] * sigmoid(gate[j], &complement);
    store_floats(y + at.y, up);
}

/* dgate = dy up s (1 + gate (1 - s)), dup = dy silu(gate), s = sigmoid(gate) */
template <typename T, int V>
static __global__ void swiglu_gradient(T *dx, const T *dy, const T *x, size_t packs,
                                       unsigned row_packs, bool add) {
    const size_t i = grid_thread();
    if (i >= packs) return;
    const SwigluPlace at = swiglu_place<V>(i, packs, row_packs);
    float gate[V], up[V], d[V], old_gate[V] = {}, old_up[V] = {};
    load_floats(gate, x + at.gate);
    load_floats(up, x + at.up);
    load_floats(d, dy + at.y);
    if (add) load_floats(old_gate, dx + at.gate);
    if (add) load_floats(old_up, dx + at.up);
#pragma unroll
    for (int j = 0; j < V; j++) {
        float complement;
        const float s = sigmoid(gate[j], &complement);
        const float dgate = d[j] * up[j] * s * fmaf(gate[j], complement, 1.0f);
        const float dup = d[j] * (gate[j] * s);
        gate[j] = add ? __fadd_rn(old_gate[j], dgate) : dgate;
        up[j] = add ? __fadd_rn(old_up[j], dup) : dup;
    }
    store_floats(dx + at.gate, gate);
    store_floats(dx + at.up, up);
}

void cuda_swiglu_forward(const Call *k) {
    const size_t width = (size_t)k->o, count = (size_t)k->rows * width;
    const DeviceIO &io = *k->io;
    WITH_VALUE_PACKS(
        k->run, T, V, k->run->version != 1 && packable(width, V, io.y, io.x),
        LAUNCH((swiglu<T, V>), grid_blocks(count / V, THREADS), THREADS, 0, k->run->stream,
               (T *)io.y, (const T *)io.x, count / V, (unsigned)width / V));
}
void cuda_swiglu_input_gradient(const Call *k) {
    const size_t width = (size_t)k->o, count = (size_t)k->rows * width;
    const DeviceIO &io = *k->io;
    WITH_VALUE_PACKS(k->run, T, V, k->run->version != 1 && packable(width, V, io.dx, io.dy, io.x),
                     LAUNCH((swiglu_gradient<T, V>), grid_blocks(count / V, THREADS), THREADS, 0,
                            k->run->stream, (T *)io.dx, (const T *)io.dy, (const T *)io.x,
                            count / V, (unsigned)width / V, io.add_dx));
}
