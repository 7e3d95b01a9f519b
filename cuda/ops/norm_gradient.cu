/* Gradients of norms: of the input, of the scale and shift, or all of them in one pass over dy
 * and x. */
#include "column_sums.cuh"
#include "norm.cuh"

/* ---- version 1 ---- */

/* The addend may be dx, or NULL for none. */
template <bool centred, typename T>
static __global__ void __launch_bounds__(NORM_THREADS)
    norm_gradient_plain(T *dx, const T *addend, const T *dy, const T *x, const T *g, Norm norm) {
    SHARED(float, scratch, [32]);
    const int c = norm.c;
    const size_t at = (size_t)blockIdx.x * c;
    const float m = centred ? norm.mean[blockIdx.x] : 0, r = norm.r[blockIdx.x];
    float sum = 0, product = 0;
    for (int j = (int)threadIdx.x; j < c; j += NORM_THREADS) {
        const float d = to_float(dy[at + j]) * to_float(g[j]);
        sum += d;
        product = fmaf(d, to_float(x[at + j]) - m, product);
    }
    const float average = centred ? block_sum(sum, scratch) / (float)c : 0;
    const float slope = block_sum(product, scratch) / (float)c * r * r;
    for (int j = (int)threadIdx.x; j < c; j += NORM_THREADS) {
        const float d = to_float(dy[at + j]) * to_float(g[j]) - average;
        const float gradient = r * fmaf(m - to_float(x[at + j]), slope, d);
        dx[at + j] =
            from_float<T>(addend ? __fadd_rn(to_float(addend[at + j]), gradient) : gradient);
    }
}

template <bool centred, int Q, typename T>
static __global__ void __launch_bounds__(NORM_THREADS)
    norm_sums_plain(StoreSums<Q> result, const T *dy, const T *x, Norm norm) {
    SHARED(double, scratch, [32]);
    const int column = (int)blockIdx.x;
    float sum[2] = {};
    for (int row = (int)threadIdx.x; row < norm.n; row += NORM_THREADS) {
        const size_t at = (size_t)row * norm.c + column;
        const float d = to_float(dy[at]), m = centred ? norm.mean[row] : 0;
        sum[0] = fmaf(d, (to_float(x[at]) - m) * norm.r[row], sum[0]);
        sum[1] += d;
    }
    double total[Q];
    for (int q = 0; q < Q; q++) total[q] = block_sum((double)sum[q], scratch);
    if (threadIdx.x == 0) result.finish(column, total);
}

/* ---- version 2 ----
 * A block walks a chunk of rows.  Its threads keep the sums of their columns in registers, and add
 * them up through shared memory at the end; the chunks' sums go through the workspace. */

enum { NORM_CHUNKS = COLUMN_BLOCKS };

/* What a thread holds of a row: packs lane, lane + threads, ... of it. */
template <int K, typename T, int V>
struct HeldRow {
    Pack<T, V> x[K], dy[K], addend[K];
    float m, r;
    int lane, packs;
};

template <int threads, int K, typename T, int V>
static DEVICE void load_held(HeldRow<K, T, V> *row, const T *x, const T *dy, const T *addend) {
    each_of<K>(row->lane, threads, row->packs, [&](int k, int i) {
        row->x[k] = load_pack<V>(x + (size_t)i * V);
        row->dy[k] = load_pack<V>(dy + (size_t)i * V);
        if (addend) row->addend[k] = load_pack<V>(addend + (size_t)i * V);
    });
}

/* Adds the row's terms of dg and db. */
template <int threads, int Q, int K, typename T, int V>
static DEVICE void add_terms(float (&sum)[Q][K][V], const HeldRow<K, T, V> &row) {
    each_of<K>(row.lane, threads, row.packs, [&](int k, int) {
        float value[V], d[V];
        unpack(value, row.x[k]);
        unpack(d, row.dy[k]);
#pragma unroll
        for (int j = 0; j < V; j++) {
            sum[0][k][j] = fmaf(d[j], (value[j] - row.m) * row.r, sum[0][k][j]);
            if constexpr (Q == 2) sum[1][k][j] += d[j];
        }
    });
}

template <bool centred, int threads, int K, typename T, int V>
static DEVICE void store_gradient(T *dx, bool add, const HeldRow<K, T, V> &row,
                                  const T *__restrict__ g, float *scratch) {
    float sum = 0, product = 0;
    each_of<K>(row.lane, threads, row.packs, [&](int k, int i) {
        float value[V], d[V], scale[V];
        unpack(value, row.x[k]);
        unpack(d, row.dy[k]);
        load_floats(scale, g + (size_t)i * V);
#pragma unroll
        for (int j = 0; j < V; j++) {
            d[j] = __fmul_rn(d[j], scale[j]);
            sum += d[j];
            product = fmaf(d[j], value[j] - row.m, product);
        }
    });
    const float c = (float)(row.packs * V);
    const float average = centred ? row_sum<threads>(sum, scratch) / c : 0;
    const float slope = row_sum<threads>(product, scratch) / c * row.r * row.r;
    each_of<K>(row.lane, threads, row.packs, [&](int k, int i) {
        float value[V], d[V], scale[V], other[V] = {};
        unpack(value, row.x[k]);
        unpack(d, row.dy[k]);
        load_floats(scale, g + (size_t)i * V);
        if (add) unpack(other, row.addend[k]);
#pragma unroll
        for (int j = 0; j < V; j++) {
            const float gradient =
                row.r * fmaf(row.m - value[j], slope, fmaf(d[j], scale[j], -average));
            d[j] = add ? __fadd_rn(other[j], gradient) : gradient;
        }
        store_floats(dx + (size_t)i * V, d);
    });
}

/* Overwrites partial[Q][c] with the sums over the block's rows.  All threads must call it; if the
 * block works on several rows at once, its first warp stores. */
template <int threads, int Q, int K, int V>
static DEVICE void store_sums(float *partial, float (&sum)[Q][K][V], int slot, int lane,
                              int packs) {
    constexpr int others = norm_rows(threads) - 1;
    if constexpr (others > 0) {
        SHARED(float, scratch, [others][Q * K * V][32]);
        if (slot > 0) {
#pragma unroll
            for (int n = 0; n < Q * K * V; n++)
                scratch[slot - 1][n][lane] = sum[n / (K * V)][n / V % K][n % V];
        }
        __syncthreads();
        if (slot > 0) return;
#pragma unroll
        for (int n = 0; n < Q * K * V; n++)
            for (int other = 0; other < others; other++)
                sum[n / (K * V)][n / V % K][n % V] += scratch[other][n][lane];
    }
    each_of<K>(lane, threads, packs, [&](int k, int i) {
#pragma unroll
        for (int q = 0; q < Q; q++) store_floats(partial + (q * packs + i) * V, sum[q][k]);
    });
}

/* dx is NULL if it is not wanted.  The addend may be dx, or NULL for none.  With `sums`,
 * partial[chunk][Q][c] is overwritten. */
template <bool centred, bool sums, int threads, int C, typename T>
static __global__ void __launch_bounds__(threads *norm_rows(threads))
    norm_gradient_packed(T *dx, const T *addend, float *partial, const T *__restrict__ dy,
                         const T *__restrict__ x, const T *__restrict__ g, Norm norm,
                         int chunk_rows) {
    constexpr int V = pack_width<T>(), K = C / V, Q = centred ? 2 : 1, step = norm_rows(threads);
    SHARED(float, scratch, [32]);
    const int slot = (int)threadIdx.x / threads, first = (int)blockIdx.x * chunk_rows;
    const int end = norm.n - first < chunk_rows ? norm.n : first + chunk_rows;
    HeldRow<K, T, V> row;
    row.lane = (int)threadIdx.x % threads;
    row.packs = norm.c / V;
    float sum[Q][K][V] = {};
    for (int n = first + slot; n < end; n += step) {
        const size_t at = (size_t)n * norm.c;
        row.m = centred ? norm.mean[n] : 0;
        row.r = norm.r[n];
        load_held<threads>(&row, x + at, dy + at, addend ? addend + at : addend);
        if (sums) add_terms<threads>(sum, row);
        if (dx) store_gradient<centred, threads>(dx + at, addend != NULL, row, g, scratch);
    }
    if constexpr (sums)
        store_sums<threads>(partial + (size_t)blockIdx.x * Q * norm.c, sum, slot, row.lane,
                            row.packs);
}

/* ---- launches ---- */

/* Returns the rows of a chunk: without sums as many as a block works on at once, with sums as many
 * as make at most NORM_CHUNKS chunks. */
static int chunk_rows(int n, int step, bool sums) {
    const int even = sums ? n / NORM_CHUNKS + (n % NORM_CHUNKS != 0) : step;
    return round_up(even, step);
}

template <bool centred, bool sums, int threads, int C, int Q, typename T>
static void launch_packed(const Run *run, T *dx, const T *addend, StoreSums<Q> result, const T *dy,
                          const T *x, const T *g, Norm norm) {
    const int step = norm_rows(threads), rows = chunk_rows(norm.n, step, sums);
    const unsigned chunks = grid_blocks(norm.n, rows);
    float *partial = (float *)run->workspace;
    LAUNCH((norm_gradient_packed<centred, sums, threads, C, T>), chunks, dim3(threads * step), 0,
           run->stream, dx, addend, partial, dy, x, g, norm, rows);
    if (sums)
        launch_column_totals(run, PartialSums<Q, StoreSums<Q>>{partial, norm.c, result},
                             (int)chunks, norm.c);
}

/* dx is NULL where it is not wanted. */
template <bool centred, typename T>
static void norm_gradient(const Call *k, void *to) {
    constexpr int Q = centred ? 2 : 1;
    const Run *run = k->run;
    const DeviceIO &io = *k->io;
    const Norm norm = norm_of(k);
    const StoreSums<Q> result = {{io.dweight, io.dbias}, {io.add_dweight, io.add_dbias}};
    const bool sums = result.to[0] || result.to[Q - 1];
    T *const dx = (T *)to;
    const T *const addend = (const T *)(!dx           ? NULL
                                        : io.residual ? io.residual
                                        : io.add_dx   ? dx
                                                      : NULL);
    const T *const dy = (const T *)io.dy, *const x = (const T *)io.x;
    const T *const g = (const T *)io.weight;
    if (run->version == 1 || norm.c > NORM_COLUMNS ||
        !packable(norm.c, pack_width<T>(), dx, addend, dy, x, g)) {
        if (dx)
            LAUNCH((norm_gradient_plain<centred, T>), norm.n, NORM_THREADS, 0, run->stream, dx,
                   addend, dy, x, g, norm);
        if (sums)
            LAUNCH((norm_sums_plain<centred, Q, T>), norm.c, NORM_THREADS, 0, run->stream, result,
                   dy, x, norm);
        return;
    }
    with_norm_shape(norm.c, [&](auto threads, auto C) {
        if (sums)
            launch_packed<centred, true, threads, C>(run, dx, addend, result, dy, x, g, norm);
        else
            launch_packed<centred, false, threads, C>(run, dx, addend, result, dy, x, g, norm);
    });
}

static void norm_gradients(const Call *k, void *dx) {
    if (k->node->kind == OP_LAYERNORM)
        WITH_VALUES(k->run, T, norm_gradient<true, T>(k, dx));
    else
        WITH_VALUES(k->run, T, norm_gradient<false, T>(k, dx));
}

void cuda_norm_input_gradient(const Call *k) { norm_gradients(k, k->io->dx); }
void cuda_norm_weight_gradient(const Call *k) { norm_gradients(k, NULL); }

size_t cuda_norm_workspace(const Call *k) {
    return (size_t)(k->rows < NORM_CHUNKS ? k->rows : NORM_CHUNKS) * 2 * k->c * sizeof(float);
}
