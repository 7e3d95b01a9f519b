/* The forward pass of norms.  With `skip`, the residual is added to x first. */
#include "norm.cuh"

/* ---- version 1 reads a row for the mean, again for the variance (from the distances to the mean,
 * so that it does not cancel), and again to normalise ---- */

template <bool centred, typename T>
static __global__ void __launch_bounds__(NORM_THREADS)
    norm_forward_plain(T *y, T *sum, const T *x, const T *skip, const T *g, const T *b, Norm norm,
                       float eps) {
    SHARED(float, scratch, [32]);
    const int c = norm.c, start = (int)threadIdx.x;
    const size_t at = (size_t)blockIdx.x * c;
    if (skip) {
        for (int j = start; j < c; j += NORM_THREADS)
            sum[at + j] = from_float<T>(__fadd_rn(to_float(x[at + j]), to_float(skip[at + j])));
        x = sum; /* each thread reads back what it wrote */
    }
    float total = 0, squares = 0;
    if (centred)
        for (int j = start; j < c; j += NORM_THREADS) total += to_float(x[at + j]);
    const float m = centred ? block_sum(total, scratch) / (float)c : 0;
    for (int j = start; j < c; j += NORM_THREADS) {
        const float d = to_float(x[at + j]) - m;
        squares = fmaf(d, d, squares);
    }
    const float r = 1.0f / sqrtf(block_sum(squares, scratch) / (float)c + eps);
    for (int j = start; j < c; j += NORM_THREADS) {
        const float xhat = (to_float(x[at + j]) - m) * r;
        y[at + j] = from_float<T>(fmaf(xhat, to_float(g[j]), centred ? to_float(b[j]) : 0));
    }
    if (start == 0) {
        if (centred) norm.mean[blockIdx.x] = m;
        norm.r[blockIdx.x] = r;
    }
}

/* ---- version 2 ---- */

/* Loads the thread's packs of x or, with skip, of the rounded x + skip, which it also stores in
 * `sum`. */
template <int threads, int K, typename T, int V>
static DEVICE void load_row(Pack<T, V> (&held)[K], T *sum, const T *x, const T *skip, int lane,
                            int packs) {
    Pack<T, V> other[K];
    each_of<K>(lane, threads, packs, [&](int k, int i) {
        held[k] = load_pack<V>(x + (size_t)i * V);
        if (skip) other[k] = load_pack<V>(skip + (size_t)i * V);
    });
    if (!skip) return;
    each_of<K>(lane, threads, packs, [&](int k, int i) {
        float a[V], b[V];
        unpack(a, held[k]);
        unpack(b, other[k]);
#pragma unroll
        for (int j = 0; j < V; j++) a[j] = __fadd_rn(a[j], b[j]);
        pack_floats(&held[k], a);
        store_pack(sum + (size_t)i * V, held[k]);
    });
}

/* Returns the sum of x or, with `square`, of (x - m)^2 over the thread's packs. */
template <bool square, int threads, int K, typename T, int V>
static DEVICE float sum_held(const Pack<T, V> (&held)[K], float m, int lane, int packs) {
    float total = 0;
    each_of<K>(lane, threads, packs, [&](int k, int) {
        float x[V];
        unpack(x, held[k]);
#pragma unroll
        for (int j = 0; j < V; j++) total = square ? fmaf(x[j] - m, x[j] - m, total) : total + x[j];
    });
    return total;
}

template <bool centred, int threads, int C, typename T>
static __global__ void __launch_bounds__(threads *norm_rows(threads))
    norm_forward_packed(T *y, T *sum, const T *x, const T *skip, const T *__restrict__ g,
                        const T *__restrict__ b, Norm norm, float eps) {
    constexpr int V = pack_width<T>(), K = C / V;
    SHARED(float, scratch, [32]);
    const int lane = (int)threadIdx.x % threads, packs = norm.c / V;
    const int row = (int)blockIdx.x * norm_rows(threads) + (int)threadIdx.x / threads;
    if (row >= norm.n) return; /* a whole warp returns; with one row a block, row < n */
    const size_t at = (size_t)row * norm.c;
    Pack<T, V> held[K];
    load_row<threads>(held, sum ? sum + at : sum, x + at, skip ? skip + at : skip, lane, packs);
    const float c = (float)norm.c;
    float m = 0;
    if (centred) m = row_sum<threads>(sum_held<false, threads>(held, 0, lane, packs), scratch) / c;
    const float squares = row_sum<threads>(sum_held<true, threads>(held, m, lane, packs), scratch);
    const float r = 1.0f / sqrtf(squares / c + eps);
    each_of<K>(lane, threads, packs, [&](int k, int i) {
        float value[V], scale[V], shift[V] = {};
        unpack(value, held[k]);
        load_floats(scale, g + (size_t)i * V);
        if (centred) load_floats(shift, b + (size_t)i * V);
#pragma unroll
        for (int j = 0; j < V; j++) value[j] = fmaf((value[j] - m) * r, scale[j], shift[j]);
        store_floats(y + at + (size_t)i * V, value);
    });
    if (lane == 0) {
        if (centred) norm.mean[row] = m;
        norm.r[row] = r;
    }
}

/* ---- launches ---- */

template <bool centred, typename T>
static void norm_forward(const Call *k) {
    const Run *run = k->run;
    const Norm norm = norm_of(k);
    T *const y = (T *)k->io->y, *const sum = (T *)k->io->sum;
    const T *const x = (const T *)k->io->x, *const skip = (const T *)k->io->skip;
    const T *const g = (const T *)k->io->weight, *const b = (const T *)k->io->bias;
    const float eps = (float)k->node->eps;
    if (run->version == 1 || norm.c > NORM_COLUMNS ||
        !packable(norm.c, pack_width<T>(), y, sum, x, skip, g, b)) {
        LAUNCH((norm_forward_plain<centred, T>), norm.n, NORM_THREADS, 0, run->stream, y, sum, x,
               skip, g, b, norm, eps);
        return;
    }
    with_norm_shape(norm.c, [&](auto threads, auto C) {
        LAUNCH((norm_forward_packed<centred, threads, C, T>),
               grid_blocks(norm.n, norm_rows(threads)), threads * norm_rows(threads), 0,
               run->stream, y, sum, x, skip, g, b, norm, eps);
    });
}

void cuda_norm_forward(const Call *k) {
    if (k->node->kind == OP_LAYERNORM)
        WITH_VALUES(k->run, T, norm_forward<true, T>(k));
    else
        WITH_VALUES(k->run, T, norm_forward<false, T>(k));
}
