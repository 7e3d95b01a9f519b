/* Multi-head attention, input gradient.  With s = scale q k^T, p = exp(s - lse) and dots = sum over
 * a head of dy y, row by row (FlashAttention, Dao et al. 2022, section B.4):
 *
 *   dv = p^T dy      dp = dy v^T      ds = scale p (dp - dots)      dq = ds k      dk = ds^T q
 *
 * Probabilities are recomputed from q, k and the saved lse.  dq is a sum over keys, dk and dv are
 * sums over queries.  So there are two kernels, each of which keeps its sums in registers: nothing
 * is added across blocks, and the bits are the same from run to run.  Scores and dp are computed in
 * both, which takes 7 products of tiles where one kernel with atomics would need 5.  The kernel for
 * dq runs first and leaves dots for the other.
 *
 * Where query heads share keys and values, dk and dv are sums over those heads too: the block that
 * has the keys goes through the queries of the group's heads one after the other, in a fixed order.
 */
#include "attention_tiles.cuh"

/* ---- Version 2: tiles ---- */

/* What changes: as in the forward pass, a block takes ROWS queries (or keys) and goes through the
 * keys (or queries) COLUMNS at a time, in shared memory, on tensor cores.  For dk and dv the scores
 * are computed transposed, as k q^T, so that rows are keys: p^T and ds^T then already lie in
 * registers as the left sides of their products. */

template <Precision P, int D>
struct GradientShape : TileShape<2, 1, 16, false> {}; /* wide rows of floats */
template <Precision P>
struct GradientShape<P, 32> : TileShape<4, 1, 32, false> {};
template <Precision P>
struct GradientShape<P, 64> : TileShape<4, 1, 32, false> {};
template <>
struct GradientShape<PRECISION_FP32, 64> : TileShape<2, 2, 16, false> {};
template <>
struct GradientShape<PRECISION_BF16, 32> : TileShape<4, 1, 64, true> {};
template <>
struct GradientShape<PRECISION_BF16, 64> : TileShape<4, 1, 64, true> {};
template <>
struct GradientShape<PRECISION_BF16, 96> : TileShape<4, 1, 32, false> {};
template <>
struct GradientShape<PRECISION_BF16, 128> : TileShape<4, 1, 32, false> {};

/* Computes dots, the sum of dy y over a row, for the lane's rows.  Each of four lanes adds up a
 * quarter of a row. */
template <typename T, int D, int M>
static DEVICE void row_dots(float (&dots)[M][2], const T *dy, const T *y) {
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int m = 0; m < 2 * M; m++) {
        float sum = 0;
#pragma unroll
        for (int i = lane % 4 * CHUNK<T>; i < D; i += 4 * CHUNK<T>) {
            const int at = (8 * m + lane / 4) * ROW<T, D> + i;
            float a[CHUNK<T>], b[CHUNK<T>];
            load_floats(a, dy + at);
            load_floats(b, y + at);
#pragma unroll
            for (int j = 0; j < CHUNK<T>; j++) sum = fmaf(a[j], b[j], sum);
        }
        dots[m / 2][m % 2] = quad_sum(sum);
    }
}

/* Computes dq and dots of ROWS queries in each of n heads ceil(t / ROWS) blocks.  With M = 1 there
 * are registers for 12 warps on a multiprocessor. */
template <Precision P, int D, typename T, typename S>
__global__ void __launch_bounds__(S::THREADS, S::M == 1 ? 384 / S::THREADS : 256 / S::THREADS)
    attention_query_gradient_tiles(Gradients<T> g, Heads<T> h) {
    constexpr int M = S::M, N = S::COLUMNS / 8, TILE = S::COLUMNS * ROW<T, D>;
    constexpr int SIDE = S::ROWS * ROW<T, D>;
    DYNAMIC_SHARED(T, q_tile); /* [ROWS], dy [ROWS], then for two steps k, v [COLUMNS] */
    T *const dy_tile = q_tile + SIDE, *const kv_tiles = dy_tile + SIDE;
    const int tiles = divide_up(h.t, S::ROWS), head = (int)blockIdx.x / tiles;
    const int first = (tiles - 1 - (int)blockIdx.x % tiles) * S::ROWS, c = h.heads * h.d;
    const int warp = (int)threadIdx.x / 32, query = first + 16 * M * warp;
    const int steps = divide_up(keys_end(h, first + S::ROWS), S::COLUMNS);
    const T *k = h.k + at_keys(h, head, h.qk_stride), *v = h.v + at_keys(h, head, h.stride);
    const auto load = [&](int step) {
        load_step<T, D, S>(kv_tiles, step, k, h.qk_stride, v, h.stride, step * S::COLUMNS, h);
        copy_async_commit();
    };
    T *const y_tile = kv_tiles; /* used for the dots, before the first keys are loaded */
    static_assert(4 * TILE >= SIDE, "y in the place of k and v");
    load_side<T, D, S>(q_tile, h.q + at_head(h, head, h.qk_stride), h.qk_stride, first, h);
    load_side<T, D, S>(dy_tile, g.dy + at_head(h, head, c), c, first, h);
    load_side<T, D, S>(y_tile, g.y + at_head(h, head, c), c, first, h);
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();

    LeftSide<P, D, M, S::HELD> q, dy;
    q.take(q_tile + 16 * M * warp * ROW<T, D>);
    dy.take(dy_tile + 16 * M * warp * ROW<T, D>);
    float dots[M][2], lse[M][2], dq[M][D / 8][4];
    row_dots<T, D, M>(dots, dy_tile + 16 * M * warp * ROW<T, D>,
                      y_tile + 16 * M * warp * ROW<T, D>);
    exchange_rows(lse, dots, g, h, head, query);
    clear(dq);
    __syncthreads(); /* y_tile has been read */
    load(0);
    for (int step = 0; step < steps; step++) {
        copy_async_wait<0>();
        __syncthreads();
        if (step + 1 < steps) load(step + 1);
        const int key = step * S::COLUMNS;
        const T *k_tile = kv_tiles + step % 2 * 2 * TILE;
        if ((key >= query + 16 * M && key >= h.every) || query >= h.t) continue;
        float s[M][N][4], dp[M][N][4];
        clear(s);
        clear(dp);
        multiply_qkt<P, D, M, N>(s, q, k_tile);
        multiply_qkt<P, D, M, N>(dp, dy, k_tile + TILE);
        if (key + S::COLUMNS > query + 1) hide_keys(s, h, query, key);
        score_gradient(s, dp, lse, dots, h.scale * LOG2_E);
        multiply_pv<P, D, M, N>(dq, s, k_tile);
    }
    __syncthreads(); /* results are written over the tiles */
    if (query < h.t)
        put_gradient<T, D, M>(g.dq + at_head(h, head, h.stride), (float *)q_tile, dq, h.scale, h,
                              query, angles_at(h, query), g.add);
}

/* Computes dk and dv of ROWS keys in each of n groups ceil(t / ROWS) blocks. */
template <Precision P, int D, typename T, typename S>
__global__ void __launch_bounds__(S::THREADS, 256 / S::THREADS)
    attention_key_gradient_tiles(Gradients<T> g, Heads<T> h) {
    constexpr int M = S::M, N = S::COLUMNS / 8, TILE = S::COLUMNS * ROW<T, D>;
    constexpr int SIDE = S::ROWS * ROW<T, D>;
    DYNAMIC_SHARED(T, k_tile); /* [ROWS], v [ROWS], then for two steps q, dy [COLUMNS] */
    T *const v_tile = k_tile + SIDE, *const q_tiles = v_tile + SIDE;
    float *const numbers = (float *)(q_tiles + 4 * TILE); /* two steps of lse, dots [COLUMNS] */
    const int tiles = divide_up(h.t, S::ROWS);
    int head = (int)blockIdx.x / tiles * h.share; /* of the group, for the next step to load */
    const int end = head + h.share;
    const int first = (int)blockIdx.x % tiles * S::ROWS, c = h.heads * h.d;
    const int warp = (int)threadIdx.x / 32, key = first + 16 * M * warp;
    const int begin = queries_begin(h, first);
    const T *q = h.q + at_head(h, head, h.qk_stride), *dy = g.dy + at_head(h, head, c);
    const auto load = [&](int step, int query) {
        load_step<T, D, S>(q_tiles, step, q, h.qk_stride, dy, c, query, h);
        load_row_numbers<S>(numbers + step % 2 * 2 * S::COLUMNS, g, h, head, query);
        copy_async_commit();
    };
    load_side<T, D, S>(k_tile, h.k + at_keys(h, head, h.qk_stride), h.qk_stride, first, h);
    load_side<T, D, S>(v_tile, h.v + at_keys(h, head, h.stride), h.stride, first, h);
    load(0, begin);
    if (S::HELD) {
        copy_async_wait<0>();
        __syncthreads();
    }
    LeftSide<P, D, M, S::HELD> k, v;
    k.take(k_tile + 16 * M * warp * ROW<T, D>);
    v.take(v_tile + 16 * M * warp * ROW<T, D>);
    float dk[M][D / 8][4], dv[M][D / 8][4];
    clear(dk);
    clear(dv);
    for (int step = 0, query = begin, next; head < end; step++, query = next) {
        copy_async_wait<0>();
        __syncthreads();
        next = query + S::COLUMNS;
        if (next >= h.t) { /* on to the next head of the group */
            next = begin;
            head++, q += h.d, dy += h.d;
        }
        if (head < end) load(step + 1, next);
        const T *q_tile = q_tiles + step % 2 * 2 * TILE;
        const float *lse = numbers + step % 2 * 2 * S::COLUMNS, *dots = lse + S::COLUMNS;
        if ((query + S::COLUMNS <= key && key >= h.every) || key >= h.t) continue;
        float p[M][N][4], dp[M][N][4];
        clear(p);
        clear(dp);
        multiply_qkt<P, D, M, N>(p, k, q_tile);
        if (query < key + 16 * M || query + S::COLUMNS > h.t) hide_queries(p, h, key, query);
#pragma unroll
        for (int j = 0; j < N; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float less = lse[accumulator_column(0, j, i)] * LOG2_E;
#pragma unroll
                for (int m = 0; m < M; m++)
                    p[m][j][i] = exp2_fast(fmaf(p[m][j][i], h.scale * LOG2_E, -less));
            }
        multiply_pv<P, D, M, N>(dv, p, q_tile + TILE);
        multiply_qkt<P, D, M, N>(dp, v, q_tile + TILE);
#pragma unroll
        for (int j = 0; j < N; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float less = dots[accumulator_column(0, j, i)];
#pragma unroll
                for (int m = 0; m < M; m++) p[m][j][i] *= dp[m][j][i] - less;
            }
        multiply_pv<P, D, M, N>(dk, p, q_tile);
    }
    __syncthreads(); /* results are written over the tiles */
    if (key >= h.t) return;
    const size_t to = at_keys(h, end - 1, h.stride);
    put_gradient<T, D, M>(g.dk + to, (float *)k_tile, dk, h.scale, h, key, angles_at(h, key),
                          g.add);
    put_gradient<T, D, M>(g.dv + to, (float *)k_tile, dv, 1, h, key, NULL, g.add);
}

template <Precision P, int D, typename T>
static void launch_tiles(const Call *k, Gradients<T> g, Heads<T> h) {
    typedef GradientShape<P, D> S;
    constexpr size_t tile_bytes = (size_t)(2 * S::ROWS + 4 * S::COLUMNS) * ROW<T, D> * sizeof(T);
    constexpr size_t bytes = tile_bytes + 4 * (size_t)S::COLUMNS * sizeof(float);
    static_assert(bytes <= MAX_SHARED, "shared memory");
    static_assert(tile_bytes >= (size_t)S::ROWS * ROW<float, D> * sizeof(float), "results");
    const int tiles = k->n * divide_up(h.t, S::ROWS);
    const auto queries = attention_query_gradient_tiles<P, D, T, S>;
    const auto keys = attention_key_gradient_tiles<P, D, T, S>;
    SHARED_LIMIT(queries, tile_bytes);
    LAUNCH(queries, h.heads * tiles, S::THREADS, tile_bytes, k->run->stream, g, h);
    SHARED_LIMIT(keys, bytes);
    LAUNCH(keys, h.groups * tiles, S::THREADS, bytes, k->run->stream, g, h);
}

/* ---- Launcher ---- */

template <Precision P>
static void input_gradient(const Call *k) {
    typedef typename ValueOf<P>::type T;
    const Attention &a = k->node->attention;
    const DeviceIO &io = *k->io;
    const AttentionSpace space = attention_space(k);
    const Heads<T> h = find_heads<T>(k, space);
    T *const dq = (T *)io.dx, *const dk = dq + a.heads * a.d, *const dv = dk + a.groups * a.d;
    const Gradients<T> g = {(const T *)io.dy, (const T *)io.y, io.aux, space.dots, dq, dk, dv,
                            io.add_dx};
    const int version = attention_version(P, k->run->version, h.d);
    if (version == 1)
        attention_rows_gradient(k, g, h);
    else if (version == 2)
        WITH_PADDED_HEAD(h.d, D, launch_tiles<P, D>(k, g, h));
    else if constexpr (P == PRECISION_BF16)
        attention_hopper_gradient(k, g, h);
}

void cuda_attention_input_gradient(const Call *k) {
    WITH_PRECISION(k->run, P, input_gradient<P>(k));
}
