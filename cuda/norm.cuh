/* Layer and root mean square normalisation over the c values of each row: one code, `centred` or
 * not.  In the formulas m is the row's mean (0 unless centred) and r one over its deviation.
 *
 *   forward    y = (x - m) r g + b                         b only if centred
 *   gradient   dx = r (dy g - A - (x - m) B), A = mean(dy g) (0 unless centred),
 *              B = r^2 mean(dy g (x - m))
 *   scale      dg = sum over rows of dy (x - m) r, db = sum of dy
 *
 * A row's bits depend on that row alone: launches are chosen by c and never by n. */
#ifndef CUDA_NORM_CUH
#define CUDA_NORM_CUH

#include "columns.cuh"

typedef struct {
    int n, c;
    float *mean, *r; /* mean NULL unless centred */
    float eps;
} NormRows; /* of a forward pass */

/* ---- version 1 --------------------------------------------------------------------------------
 * A block for each row, which it reads once for the mean, once for the variance (from the mean, so
 * that it does not cancel) and once to normalise. */

enum { NORM_PLAIN_THREADS = 128 };

template <bool centred, typename T>
static __global__ void __launch_bounds__(NORM_PLAIN_THREADS)
    norm_forward_plain(T *y, T *sum, const T *x, const T *skip, const T *g, const T *b,
                       NormRows rows) {
    SHARED(float, scratch, [32]);
    const int c = rows.c, start = (int)threadIdx.x;
    const size_t at = (size_t)blockIdx.x * (size_t)c;
    if (skip) {
        for (int j = start; j < c; j += NORM_PLAIN_THREADS)
            sum[at + (size_t)j] = from_float<T>(
                __fadd_rn(to_float(x[at + (size_t)j]), to_float(skip[at + (size_t)j])));
        x = sum; /* each thread reads back what it wrote */
    }
    float total = 0, squares = 0;
    if (centred)
        for (int j = start; j < c; j += NORM_PLAIN_THREADS) total += to_float(x[at + (size_t)j]);
    const float m = centred ? block_sum(total, scratch) / (float)c : 0;
    for (int j = start; j < c; j += NORM_PLAIN_THREADS) {
        const float d = to_float(x[at + (size_t)j]) - m;
        squares = fmaf(d, d, squares);
    }
    const float r = 1.0f / sqrtf(block_sum(squares, scratch) / (float)c + rows.eps);
    for (int j = start; j < c; j += NORM_PLAIN_THREADS) {
        const float xhat = (to_float(x[at + (size_t)j]) - m) * r;
        y[at + (size_t)j] = from_float<T>(fmaf(xhat, to_float(g[j]), centred ? to_float(b[j]) : 0));
    }
    if (start == 0) {
        if (centred) rows.mean[blockIdx.x] = m;
        rows.r[blockIdx.x] = r;
    }
}

/* addend may be dx. */
template <bool centred, typename T>
static __global__ void __launch_bounds__(NORM_PLAIN_THREADS)
    norm_gradient_plain(T *dx, const T *addend, const T *dy, const T *x, const T *g,
                        const float *mean, const float *rs, int c) {
    SHARED(float, scratch, [32]);
    const size_t at = (size_t)blockIdx.x * (size_t)c;
    const float m = centred ? mean[blockIdx.x] : 0, r = rs[blockIdx.x];
    float sum = 0, product = 0;
    for (int j = (int)threadIdx.x; j < c; j += NORM_PLAIN_THREADS) {
        const float d = to_float(dy[at + (size_t)j]) * to_float(g[j]);
        sum += d;
        product = fmaf(d, to_float(x[at + (size_t)j]) - m, product);
    }
    const float average = centred ? block_sum(sum, scratch) / (float)c : 0;
    const float slope = block_sum(product, scratch) / (float)c * r * r;
    for (int j = (int)threadIdx.x; j < c; j += NORM_PLAIN_THREADS) {
        const float d = to_float(dy[at + (size_t)j]) * to_float(g[j]) - average;
        const float gradient = r * fmaf(m - to_float(x[at + (size_t)j]), slope, d);
        dx[at + (size_t)j] = from_float<T>(
            addend ? __fadd_rn(to_float(addend[at + (size_t)j]), gradient) : gradient);
    }
}

/* ---- version 2 --------------------------------------------------------------------------------
 * The row is read once, in packs of 128 bits, all of them on their way together, and stays in the
 * registers of its threads (as packs: bf16 takes half the registers of its floats).  A warp for
 * each row, so that nobody waits at a barrier, or 256 threads for rows beyond 8 packs a lane. */

enum { NORM_WARPS = 4, NORM_WIDE = 256 }; /* rows of a block of warps; threads of a wide row */

template <int threads>
static __device__ __forceinline__ float row_sum(float x, float *scratch) {
    if constexpr (threads == 32)
        return warp_sum(x);
    else
        return block_sum(x, scratch);
}

/* A thread's place: its row, and its packs lane, lane + threads, ... of the row's. */
template <int threads>
static __device__ __forceinline__ int norm_row(int *lane) {
    *lane = (int)threadIdx.x % threads;
    return (int)blockIdx.x * ((int)blockDim.x / threads) + (int)threadIdx.x / threads;
}

/* The packs of x, or of the rounded x + skip, which also go to `sum`. */
template <int threads, int K, typename T, int V>
static __device__ __forceinline__ void load_row(Pack<T, V> (&held)[K], T *sum, const T *x,
                                                const T *skip, int lane, int packs) {
    Pack<T, V> other[K];
#pragma unroll
    for (int k = 0; k < K; k++) {
        const int i = lane + k * threads;
        if (i >= packs) break;
        held[k] = load_pack<V>(x + (size_t)i * V);
        if (skip) other[k] = load_pack<V>(skip + (size_t)i * V);
    }
    if (!skip) return;
#pragma unroll
    for (int k = 0; k < K; k++) {
        const int i = lane + k * threads;
        if (i >= packs) break;
        float a[V], b[V];
        unpack(a, held[k]);
        unpack(b, other[k]);
#pragma unroll
        for (int j = 0; j < V; j++) a[j] = __fadd_rn(a[j], b[j]);
        pack_floats(&held[k], a);
        store_pack(sum + (size_t)i * V, held[k]);
    }
}

/* sum of x - m, or of its squares, over the thread's packs */
template <bool square, int threads, int K, typename T, int V>
static __device__ __forceinline__ float sum_held(const Pack<T, V> (&held)[K], float m, int lane,
                                                 int packs) {
    float total = 0;
#pragma unroll
    for (int k = 0; k < K; k++) {
        if (lane + k * threads >= packs) break;
        float x[V];
        unpack(x, held[k]);
#pragma unroll
        for (int j = 0; j < V; j++) total = square ? fmaf(x[j] - m, x[j] - m, total) : total + x[j];
    }
    return total;
}

template <bool centred, int threads, int K, typename T>
static __global__ void norm_forward_packed(T *y, T *sum, const T *x, const T *skip,
                                           const T *__restrict__ g, const T *__restrict__ b,
                                           NormRows rows) {
    constexpr int V = pack_width<T>();
    SHARED(float, scratch, [32]);
    int lane;
    const int row = norm_row<threads>(&lane), packs = rows.c / V;
    if (row >= rows.n) return; /* a whole warp; a wide row's block is never beyond n */
    const size_t at = (size_t)row * (size_t)rows.c;
    Pack<T, V> held[K];
    load_row<threads>(held, sum ? sum + at : sum, x + at, skip ? skip + at : skip, lane, packs);
    const float c = (float)rows.c;
    float m = 0;
    if (centred) m = row_sum<threads>(sum_held<false, threads>(held, 0, lane, packs), scratch) / c;
    const float squares = row_sum<threads>(sum_held<true, threads>(held, m, lane, packs), scratch);
    const float r = 1.0f / sqrtf(squares / c + rows.eps);
#pragma unroll
    for (int k = 0; k < K; k++) {
        const int i = lane + k * threads;
        if (i >= packs) break;
        float value[V], scale[V], shift[V] = {};
        unpack(value, held[k]);
        load_floats(scale, g + (size_t)i * V);
        if (centred) load_floats(shift, b + (size_t)i * V);
#pragma unroll
        for (int j = 0; j < V; j++) value[j] = fmaf((value[j] - m) * r, scale[j], shift[j]);
        store_floats(y + at + (size_t)i * V, value);
    }
    if (lane == 0) {
        if (centred) rows.mean[row] = m;
        rows.r[row] = r;
    }
}

template <bool centred, int threads, int K, typename T>
static __global__ void norm_gradient_packed(T *dx, const T *addend, const T *__restrict__ dy,
                                            const T *__restrict__ x, const T *__restrict__ g,
                                            const float *__restrict__ mean,
                                            const float *__restrict__ rs, int n, int c) {
    constexpr int V = pack_width<T>();
    SHARED(float, scratch, [32]);
    int lane;
    const int row = norm_row<threads>(&lane), packs = c / V;
    if (row >= n) return;
    const size_t at = (size_t)row * (size_t)c;
    Pack<T, V> held[K], held_dy[K], held_addend[K];
    const float m = centred ? mean[row] : 0, r = rs[row];
#pragma unroll
    for (int k = 0; k < K; k++) {
        const int i = lane + k * threads;
        if (i >= packs) break;
        held[k] = load_pack<V>(x + at + (size_t)i * V);
        held_dy[k] = load_pack<V>(dy + at + (size_t)i * V);
        if (addend) held_addend[k] = load_pack<V>(addend + at + (size_t)i * V);
    }
    float sum = 0, product = 0;
#pragma unroll
    for (int k = 0; k < K; k++) {
        const int i = lane + k * threads;
        if (i >= packs) break;
        float value[V], d[V], scale[V];
        unpack(value, held[k]);
        unpack(d, held_dy[k]);
        load_floats(scale, g + (size_t)i * V);
#pragma unroll
        for (int j = 0; j < V; j++) {
            d[j] *= scale[j];
            sum += d[j];
            product = fmaf(d[j], value[j] - m, product);
        }
    }
    const float average = centred ? row_sum<threads>(sum, scratch) / (float)c : 0;
    const float slope = row_sum<threads>(product, scratch) / (float)c * r * r;
#pragma unroll
    for (int k = 0; k < K; k++) {
        const int i = lane + k * threads;
        if (i >= packs) break;
        float value[V], d[V], scale[V], other[V] = {};
        unpack(value, held[k]);
        unpack(d, held_dy[k]);
        load_floats(scale, g + (size_t)i * V);
        if (addend) unpack(other, held_addend[k]);
#pragma unroll
        for (int j = 0; j < V; j++) {
            const float gradient = r * fmaf(m - value[j], slope, d[j] * scale[j] - average);
            d[j] = addend ? __fadd_rn(other[j], gradient) : gradient;
        }
        store_floats(dx + at + (size_t)i * V, d);
    }
}

/* ---- launches -------------------------------------------------------------------------------- */

/* CALL(threads, K): the least of the shapes of version 2 that holds `packs` packs; a statement. */
#define NORM_SHAPE(packs, CALL)                \
    do {                                       \
        if ((packs) <= 2 * 32) {               \
            CALL(32, 2);                       \
        } else if ((packs) <= 4 * 32) {        \
            CALL(32, 4);                       \
        } else if ((packs) <= 8 * 32) {        \
            CALL(32, 8);                       \
        } else if ((packs) <= 2 * NORM_WIDE) { \
            CALL(NORM_WIDE, 2);                \
        } else if ((packs) <= 4 * NORM_WIDE) { \
            CALL(NORM_WIDE, 4);                \
        } else {                               \
            CALL(NORM_WIDE, 8);                \
        }                                      \
    } while (0)
enum { NORM_PACKS = 8 * NORM_WIDE }; /* the most */

static inline dim3 norm_blocks(int n, int threads) {
    return dim3(grid_blocks((size_t)n, threads == 32 ? NORM_WARPS : 1));
}
static inline dim3 norm_threads(int threads) {
    return dim3((unsigned)(threads == 32 ? NORM_WARPS * 32 : threads));
}

template <bool centred, typename T>
static void norm_forward(const Run *run, T *y, T *sum, const T *x, const T *skip, const T *g,
                         const T *b, NormRows rows) {
    constexpr int V = pack_width<T>();
    if (run->version == 1 || rows.c / V > NORM_PACKS ||
        !packable((size_t)rows.c, V, y, sum, x, skip, g, b)) {
        LAUNCH((norm_forward_plain<centred, T>), dim3((unsigned)rows.n), NORM_PLAIN_THREADS, 0,
               run->stream, y, sum, x, skip, g, b, rows);
        return;
    }
#define NORM_CALL(threads, K)                                                           \
    LAUNCH((norm_forward_packed<centred, threads, K, T>), norm_blocks(rows.n, threads), \
           norm_threads(threads), 0, run->stream, y, sum, x, skip, g, b, rows)
    NORM_SHAPE(rows.c / V, NORM_CALL);
#undef NORM_CALL
}

template <bool centred, typename T>
static void norm_input_gradient(const Run *run, T *dx, const T *addend, const T *dy, const T *x,
                                const T *g, const float *mean, const float *r, int n, int c) {
    constexpr int V = pack_width<T>();
    if (run->version == 1 || c / V > NORM_PACKS || !packable((size_t)c, V, dx, addend, dy, x, g)) {
        LAUNCH((norm_gradient_plain<centred, T>), dim3((unsigned)n), NORM_PLAIN_THREADS, 0,
               run->stream, dx, addend, dy, x, g, mean, r, c);
        return;
    }
#define NORM_CALL(threads, K)                                                       \
    LAUNCH((norm_gradient_packed<centred, threads, K, T>), norm_blocks(n, threads), \
           norm_threads(threads), 0, run->stream, dx, addend, dy, x, g, mean, r, n, c)
    NORM_SHAPE(c / V, NORM_CALL);
#undef NORM_CALL
}

/* ---- gradients of the scale and the shift, in one pass over dy and x (columns.cuh) -------------
 */

template <bool centred, typename T>
struct NormTerm {
    static constexpr int sums = centred ? 2 : 1;
    const T *dy, *x;
    const float *mean, *r;
    template <int V>
    struct Row {
        Pack<T, V> dy, x;
        float mean, r;
    };
    template <int V>
    __device__ __forceinline__ Row<V> load(size_t at, int row) const {
        return {load_pack<V>(dy + at), load_pack<V>(x + at), centred ? mean[row] : 0, r[row]};
    }
    template <int V>
    __device__ __forceinline__ void add(float (&sum)[sums][V], const Row<V> &row, int) const {
        float d[V], value[V];
        unpack(d, row.dy);
        unpack(value, row.x);
#pragma unroll
        for (int j = 0; j < V; j++) {
            sum[0][j] = fmaf(d[j], (value[j] - row.mean) * row.r, sum[0][j]);
            if constexpr (centred) sum[1][j] += d[j];
        }
    }
};

template <int Q>
struct StoreNormSums {
    float *to[Q]; /* dg, db; NULL: not wanted */
    bool add[Q];
    __device__ __forceinline__ void finish(int column, const double (&sum)[Q]) const {
        for (int q = 0; q < Q; q++)
            if (to[q]) to[q][column] = (float)sum[q] + (add[q] ? to[q][column] : 0.0f);
    }
};

template <bool centred, typename T>
static void norm_weight_gradient(const Run *run, NormTerm<centred, T> term,
                                 StoreNormSums<NormTerm<centred, T>::sums> result, int n, int c) {
    constexpr int V = pack_width<T>();
    if (packable((size_t)c, V, term.dy, term.x))
        column_sums<V>(run, term, result, n, c, c);
    else
        column_sums<1>(run, term, result, n, c, c);
}

#endif
