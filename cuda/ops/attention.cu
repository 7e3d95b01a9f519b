/* Multi-head attention, forward: y = softmax(q k^T / sqrt(d)) v over all positions or, if causal,
 * over those up to the query's (Vaswani et al. 2017, eq. 1).  The log-sum-exp of each row of scores
 * is saved.  Query heads may share keys and values (Ainslie et al. 2023); the blocks of a group are
 * neighbours in the grid, so that they find the shared keys and values in the cache.
 *
 * No row of scores is ever stored: the softmax's maximum and sum are updated along the keys, and
 * sums made under an old maximum are scaled down when a larger one appears (FlashAttention, Dao et
 * al. 2022; the order of loops is that of its second version, Dao 2023). */
#include "attention_tiles.cuh"

/* ---- Version 2: tiles ---- */

/* What changes: a block takes ROWS queries of a head, a warp 16 M of them.  COLUMNS keys and values
 * at a time are copied to shared memory for all of them, so that a key is read from global memory
 * once for many queries.  Both products run on tensor cores (tiles.cuh), and the next keys are
 * loaded while these are used.  Scores and sums stay in registers: the exponentials of a warp's
 * scores already lie as the left side of the second product needs them.  If causal, tiles above the
 * diagonal are skipped; only tiles across the diagonal and the last ones are masked, and the blocks
 * with the most tiles start first.  Powers are of 2, which the hardware has, with log2(e) folded
 * into the scale. */

template <Precision P, int D>
struct ForwardShape : TileShape<2, 2, 16, false> {}; /* wide rows of floats */
template <int D>
struct ForwardShape<PRECISION_BF16, D> : TileShape<4, 2, D <= 64 ? 64 : 32, D <= 64> {};
template <Precision P>
struct ForwardShape<P, 32> : TileShape<4, 2, 32, false> {};
template <Precision P>
struct ForwardShape<P, 64> : TileShape<4, 2, 32, false> {};
template <>
struct ForwardShape<PRECISION_BF16, 32> : TileShape<4, 2, 64, true> {};
template <>
struct ForwardShape<PRECISION_BF16, 64> : TileShape<4, 2, 64, true> {};

/* Computes y and lse of ROWS queries in each of n heads ceil(t / ROWS) blocks. */
template <Precision P, int D, typename T, typename S>
__global__ void __launch_bounds__(S::THREADS, 256 / S::THREADS)
    attention_tiles(T *y, float *lse, Heads<T> h) {
    constexpr int M = S::M, N = S::COLUMNS / 8, TILE = S::COLUMNS * ROW<T, D>;
    DYNAMIC_SHARED(T, q_tile); /* [ROWS], then for two steps k [COLUMNS], v [COLUMNS] */
    T *const kv_tiles = q_tile + S::ROWS * ROW<T, D>;
    const int tiles = divide_up(h.t, S::ROWS), head = (int)blockIdx.x / tiles;
    const int first = (tiles - 1 - (int)blockIdx.x % tiles) * S::ROWS;
    const int warp = (int)threadIdx.x / 32, query = first + 16 * M * warp;
    const int steps = divide_up(keys_end(h, first + S::ROWS), S::COLUMNS);
    const T *k = h.k + at_keys(h, head, h.qk_stride), *v = h.v + at_keys(h, head, h.stride);
    const auto load = [&](int step) {
        load_step<T, D, S>(kv_tiles, step, k, h.qk_stride, v, h.stride, step * S::COLUMNS, h);
        copy_async_commit();
    };
    load_side<T, D, S>(q_tile, h.q + at_head(h, head, h.qk_stride), h.qk_stride, first, h);
    load(0);

    Softmax<M> softmax;
    float sum_v[M][D / 8][4];
    clear(sum_v);
#pragma unroll
    for (int m = 0; m < 2 * M; m++) {
        softmax.most[m / 2][m % 2] = -INFINITY;
        softmax.sum[m / 2][m % 2] = 0;
    }
    LeftSide<P, D, M, S::HELD> q;
    if (S::HELD) {
        copy_async_wait<0>();
        __syncthreads();
    }
    q.take(q_tile + 16 * M * warp * ROW<T, D>);
    for (int step = 0; step < steps; step++) {
        copy_async_wait<0>();
        __syncthreads(); /* this step's tiles are there; the last step's are free */
        if (step + 1 < steps) load(step + 1);
        const int key = step * S::COLUMNS;
        const T *k_tile = kv_tiles + step % 2 * 2 * TILE;
        if ((key >= query + 16 * M && key >= h.every) || query >= h.t) continue;
        float s[M][N][4];
        clear(s);
        multiply_qkt<P, D, M, N>(s, q, k_tile);
        if (key + S::COLUMNS > query + 1) hide_keys(s, h, query, key);
        online_softmax<D, M, N>(softmax, sum_v, s, h.scale * LOG2_E);
        multiply_pv<P, D, M, N>(sum_v, s, k_tile + TILE);
    }
    __syncthreads(); /* results are written over the tiles */
    if (query < h.t)
        finish<T, D, M>(y, lse, (float *)q_tile + 16 * M * warp * ROW<float, D>, softmax, sum_v, h,
                        head, query);
}

template <Precision P, int D, typename T>
static void launch_tiles(const Call *k, Heads<T> h) {
    typedef ForwardShape<P, D> S;
    constexpr size_t bytes = (size_t)(S::ROWS + 4 * S::COLUMNS) * ROW<T, D> * sizeof(T);
    static_assert(bytes <= MAX_SHARED, "shared memory");
    static_assert(bytes >= (size_t)S::ROWS * ROW<float, D> * sizeof(float), "results");
    const auto kernel = attention_tiles<P, D, T, S>;
    SHARED_LIMIT(kernel, bytes);
    LAUNCH(kernel, k->n * h.heads * divide_up(h.t, S::ROWS), S::THREADS, bytes, k->run->stream,
           (T *)k->io->y, k->io->aux, h);
}

template <Precision P>
static void forward(const Call *k) {
    typedef typename ValueOf<P>::type T;
    const Heads<T> h = find_heads<T>(k, attention_space(k));
    const int version = attention_version(P, k->run->version, h.d);
    if (version == 1)
        attention_rows_forward(k, h);
    else if (version == 2)
        WITH_PADDED_HEAD(h.d, D, launch_tiles<P, D>(k, h));
    else if constexpr (P == PRECISION_BF16)
        attention_hopper_forward(k, h);
}

/* ---- Launcher ---- */

AttentionSpace attention_space(const Call *k) {
    const Attention &a = k->node->attention;
    const size_t rows = (size_t)k->rows, half = (size_t)(a.d / 2);
    const size_t rotated = a.rope.base > 0 ? (size_t)(a.heads + a.groups) * a.d : 0;
    const size_t align = 256;
    size_t bytes = 0;
    const auto take = [&](size_t size) {
        void *piece = k->run->workspace ? (char *)k->run->workspace + bytes : NULL;
        bytes += (size + align - 1) / align * align;
        return piece;
    };
    AttentionSpace space;
    space.dots = (float *)take(rows * a.heads * sizeof(float));
    space.angles = (float2 *)take(rotated ? (size_t)k->positions * half * sizeof(float2) : 0);
    space.rotated = take(rows * rotated * value_size(k->run->precision));
    space.bytes = bytes;
    return space;
}

size_t cuda_attention_workspace(const Call *k) { return attention_space(k).bytes; }

int cuda_attention_versions(Precision precision, int d) {
    return attention_version(precision, 3, d);
}

void cuda_attention_forward(const Call *k) { WITH_PRECISION(k->run, P, forward<P>(k)); }
