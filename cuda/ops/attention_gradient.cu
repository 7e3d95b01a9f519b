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
#include "attention_hopper.cuh"

/* ---- Versions 2 and 3: tiles ---- */

/* What changes: as in the forward pass, a block takes ROWS queries (or keys) and goes through the
 * keys (or queries) COLUMNS at a time, in shared memory, on tensor cores.  For dk and dv the scores
 * are computed transposed, as k q^T, so that rows are keys: p^T and ds^T then already lie in
 * registers as the left sides of their products. */

/* In fp32, rows of 64 are wide already; they take two pieces of 16 rows a warp. */
template <Precision P, int D, bool BF16 = P == PRECISION_BF16, bool FP32 = P == PRECISION_FP32,
          bool WIDE = (D > (FP32 ? 32 : 64))>
using GradientShape = TileShape<BF16 || !WIDE ? 4 : 2, FP32 && D == 64 ? 2 : 1,
                                (BF16 ? 64 : 32) / (WIDE ? 2 : 1), BF16 && !WIDE>;

/* Computes dots, the sum of dy y over a row, for the lane's rows; dy and y have `rows` rows of D
 * numbers, `stride` apart.  Each of four lanes adds up a quarter of a row. */
template <int D, int M, typename T>
static DEVICE void row_dots(float (&dots)[M][2], const T *dy, const T *y, int stride, int rows) {
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int m = 0; m < 2 * M; m++) {
        const int row = 8 * m + lane / 4;
        float sum = 0;
#pragma unroll
        for (int i = lane % 4 * CHUNK<T>; i < D; i += 4 * CHUNK<T>) {
            if (row >= rows) continue;
            float a[CHUNK<T>], b[CHUNK<T>];
            load_floats(a, dy + row * stride + i);
            load_floats(b, y + row * stride + i);
#pragma unroll
            for (int j = 0; j < CHUNK<T>; j++) sum = fmaf(a[j], b[j], sum);
        }
        dots[m / 2][m % 2] = quad_sum(sum);
    }
}

/* Computes dq, and dots for the other kernel, of ROWS queries in each of n heads ceil(t / ROWS)
 * blocks. */
template <typename W, int BLOCKS, typename T>
__global__ void __launch_bounds__(W::THREADS, BLOCKS)
    attention_query_gradient_tiles(Gradients<T> g, Heads<T> h) {
    constexpr int M = W::M, D = W::D;
    DYNAMIC_SHARED(char, shared); /* q, dy [ROWS], then for two steps k, v [COLUMNS] */
    T *const q_tile = W::first(shared), *const dy_tile = q_tile + W::SIDE;
    T *const kv_tiles = dy_tile + W::SIDE;
    const int tiles = ceil_div(h.t, W::ROWS), head = (int)blockIdx.x / tiles;
    const int first = (tiles - 1 - (int)blockIdx.x % tiles) * W::ROWS, c = h.heads * h.d;
    const int warp = (int)threadIdx.x / 32, query = first + 16 * M * warp;
    const int unit = first + (int)threadIdx.x / W::UNIT_THREADS * W::UNIT;
    const int begin = keys_begin(h, first) / W::COLUMNS;
    const int steps = ceil_div(keys_end(h, first + W::ROWS), W::COLUMNS);
    const T *k = h.k + at_keys(h, head, h.qk_stride), *v = h.v + at_keys(h, head, h.stride);
    const auto load = [&](int step) {
        load_pair<W>(kv_tiles, step, k, h.qk_stride, v, h.stride, step * W::COLUMNS, h);
        copy_async_commit();
    };
    const T *all_dy = g.dy + at_head(h, head, c), *all_y = g.y + at_head(h, head, c);
    W::load_side(q_tile, h.q + at_head(h, head, h.qk_stride), h.qk_stride, first, h);
    W::load_side(dy_tile, all_dy, c, first, h);
    /* Warps read y from its tile, in the place of keys and values, before these are loaded. */
    if constexpr (W::IN_PAIRS) {
        load(begin);
    } else {
        static_assert(4 * W::TILE >= W::SIDE, "y in the place of k and v");
        W::load_side(kv_tiles, all_y, c, first, h);
        copy_async_commit();
        W::wait();
        __syncthreads();
    }
    typename W::Left q, dy;
    W::take(q, q_tile);
    W::take(dy, dy_tile);
    float dots[M][2], lse[M][2], dq[M][D / 8][4];
    if constexpr (W::IN_PAIRS)
        row_dots<D>(dots, all_dy + (size_t)query * c, all_y + (size_t)query * c, c, h.t - query);
    else
        row_dots<D>(dots, W::own(dy_tile), W::own(kv_tiles), ROW<T, D>, 16 * M);
    exchange_rows(lse, dots, g, h, head, query);
    clear(dq);
    if constexpr (!W::IN_PAIRS) {
        __syncthreads(); /* y has been read */
        load(begin);
    }
    for (int step = begin; step < steps; step++) {
        W::wait();
        __syncthreads();
        if (step + 1 < steps) load(step + 1);
        const int key = step * W::COLUMNS;
        const T *k_tile = kv_tiles + step % 2 * 2 * W::TILE;
        if (no_keys<W>(h, unit, key)) continue;
        float s[M][W::N][4], dp[M][W::N][4];
        __syncwarp();
        W::dots(s, q, k_tile, dp, dy, k_tile + W::TILE);
        if (some_keys<W>(h, query, key)) hide_keys(s, h, query, key);
        score_gradient(s, dp, lse, dots, h.scale * LOG2_E);
        W::sums(dq, s, k_tile);
    }
    __syncthreads(); /* results are written over the tiles */
    if (query < h.t)
        put_gradient<T, D, M>(g.dq + at_head(h, head, h.stride), (float *)q_tile, dq, h.scale, h,
                              query, angles_at(h, query), g.add);
}

/* Computes dk and dv of ROWS keys in each of n groups ceil(t / ROWS) blocks. */
template <typename W, typename T>
__global__ void __launch_bounds__(W::THREADS, W::BLOCKS)
    attention_key_gradient_tiles(Gradients<T> g, Heads<T> h) {
    constexpr int M = W::M, D = W::D, N = W::N;
    DYNAMIC_SHARED(char, shared); /* k, v [ROWS], then for two steps q, dy [COLUMNS] */
    SHARED(float, numbers, [2][2 * W::COLUMNS]); /* lse and dots of two steps */
    T *const k_tile = W::first(shared), *const v_tile = k_tile + W::SIDE;
    T *const q_tiles = v_tile + W::SIDE;
    const int tiles = ceil_div(h.t, W::ROWS);
    int head = (int)blockIdx.x / tiles * h.share; /* of the group, for the next step to load */
    const int end = head + h.share;
    const int first = (int)blockIdx.x % tiles * W::ROWS, c = h.heads * h.d;
    const int warp = (int)threadIdx.x / 32, key = first + 16 * M * warp;
    const int unit = first + (int)threadIdx.x / W::UNIT_THREADS * W::UNIT;
    const int begin = queries_begin(h, first), stop = queries_end(h, first + W::ROWS);
    const T *q = h.q + at_head(h, head, h.qk_stride), *dy = g.dy + at_head(h, head, c);
    const auto load = [&](int step, int query) {
        load_pair<W>(q_tiles, step, q, h.qk_stride, dy, c, query, h);
        load_row_numbers<W>(numbers[step % 2], g, h, head, query);
        copy_async_commit();
    };
    W::load_side(k_tile, h.k + at_keys(h, head, h.qk_stride), h.qk_stride, first, h);
    W::load_side(v_tile, h.v + at_keys(h, head, h.stride), h.stride, first, h);
    load(0, begin);
    if (W::HELD) {
        W::wait();
        __syncthreads();
    }
    typename W::Left k, v;
    W::take(k, k_tile);
    W::take(v, v_tile);
    float dk[M][D / 8][4], dv[M][D / 8][4];
    clear(dk);
    clear(dv);
    for (int step = 0, query = begin, next; head < end; step++, query = next) {
        W::wait();
        __syncthreads();
        next = query + W::COLUMNS;
        if (next >= stop) { /* on to the next head of the group */
            next = begin;
            head++, q += h.d, dy += h.d;
        }
        if (head < end) load(step + 1, next);
        const T *q_tile = q_tiles + step % 2 * 2 * W::TILE, *dy_tile = q_tile + W::TILE;
        const float *lse = numbers[step % 2], *dots = lse + W::COLUMNS;
        if ((query + W::COLUMNS <= unit && unit >= h.every) || unit >= h.t ||
            query >= queries_end(h, unit + W::UNIT))
            continue;
        float p[M][N][4], dp[M][N][4];
        __syncwarp();
        if constexpr (W::IN_PAIRS)
            W::dots(p, k, q_tile, dp, v, dy_tile);
        else
            W::dots(p, k, q_tile);
        if (query < key + 16 * M || query + W::COLUMNS > min(h.t, key + h.window))
            hide_queries(p, h, key, query);
        each_number<M, N>([&](int m, int j, int i) {
            const float less = lse[accumulator_column(0, j, i)] * LOG2_E;
            p[m][j][i] = exp2_fast(fmaf(p[m][j][i], h.scale * LOG2_E, -less));
        });
        W::sums(dv, p, dy_tile);
        if constexpr (!W::IN_PAIRS) W::dots(dp, v, dy_tile);
        each_number<M, N>([&](int m, int j, int i) {
            p[m][j][i] *= dp[m][j][i] - dots[accumulator_column(0, j, i)];
        });
        W::sums(dk, p, q_tile);
    }
    __syncthreads(); /* results are written over the tiles */
    if (key >= h.t) return;
    const size_t to = at_keys(h, end - 1, h.stride);
    put_gradient<T, D, M>(g.dk + to, (float *)k_tile, dk, h.scale, h, key, angles_at(h, key),
                          g.add);
    put_gradient<T, D, M>(g.dv + to, (float *)k_tile, dv, 1, h, key, NULL, g.add);
}

template <typename Q, typename K, int Q_BLOCKS, typename T>
static void launch(const Call *k, Gradients<T> g, Heads<T> h) {
    constexpr size_t q_bytes = Q::bytes(2), k_bytes = K::bytes(2);
    constexpr size_t numbers = 4 * K::COLUMNS * sizeof(float);
    static_assert(q_bytes <= Q::MAX_BYTES && k_bytes + numbers <= K::MAX_BYTES, "shared memory");
    const auto queries = attention_query_gradient_tiles<Q, Q_BLOCKS, T>;
    const auto keys = attention_key_gradient_tiles<K, T>;
    SHARED_LIMIT(queries, q_bytes);
    LAUNCH(queries, k->n * h.heads * ceil_div(h.t, Q::ROWS), Q::THREADS, q_bytes, k->run->stream, g,
           h);
    SHARED_LIMIT(keys, k_bytes);
    LAUNCH(keys, k->n * h.groups * ceil_div(h.t, K::ROWS), K::THREADS, k_bytes, k->run->stream, g,
           h);
}

/* With M = 1 there are registers for 12 warps of the kernel for dq on a multiprocessor. */
template <Precision P, int D, typename T>
static void launch_warps(const Call *k, Gradients<T> g, Heads<T> h) {
    typedef Warps<P, D, GradientShape<P, D>> W;
    launch<W, W, W::M == 1 ? 384 / W::THREADS : W::BLOCKS>(k, g, h);
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
        with_padded_head(h.d, [&](auto D) { launch_warps<P, D>(k, g, h); });
    else if constexpr (P == PRECISION_BF16)
        h.d == 64 ? launch<Warpgroups<64, 3, 1>, Warpgroups<64, 2, 1>, 1>(k, g, h)
                  : launch<Warpgroups<128, 2, 1>, Warpgroups<128, 2, 1>, 1>(k, g, h);
}

void cuda_attention_input_gradient(const Call *k) {
    with_precision(k->run, [&](auto P) { input_gradient<P>(k); });
}
