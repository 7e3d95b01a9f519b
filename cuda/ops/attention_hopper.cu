/* Version 3 of attention, for bf16 heads of 64 and 128 on compute capability 9.0: version 2 with
 * the products of wgmma_tiles.cuh.  The mathematics, the order of sums and the grids are those of
 * attention.cu and attention_gradient.cu; read these first.
 *
 * What changes: 64 rows belong to a warpgroup instead of 16 or 32 to a warp, and the tensor cores
 * read tiles from shared memory themselves, where version 2 loads each fragment into registers of
 * each warp.  So a number is read once for 64 rows, which mma.sync cannot do.  The warps of a group
 * wait for each product; meanwhile those of other groups compute their exponentials. */
#include "attention_tiles.cuh"
#include "wgmma_tiles.cuh"

typedef __nv_bfloat16 Bf16;

/* A block has GROUPS warpgroups, as many as there are registers for, and goes through the other
 * side COLUMNS at a time, with two steps in flight.  BLOCKS blocks fit on a multiprocessor. */
template <int GROUPS_, int BLOCKS_>
struct HopperShape {
    static constexpr int GROUPS = GROUPS_, BLOCKS = BLOCKS_, COLUMNS = 64;
    static constexpr int THREADS = 128 * GROUPS, ROWS = 64 * GROUPS, N = COLUMNS / 8;
};
template <int D>
struct HopperForward : HopperShape<2, 2> {};
template <>
struct HopperForward<128> : HopperShape<3, 1> {};
template <int D>
struct HopperQueries : HopperShape<3, 1> {};
template <>
struct HopperQueries<128> : HopperShape<2, 1> {};
template <int D>
struct HopperKeys : HopperShape<2, 1> {};

/* Returns the bytes of tiles that have `rows` rows in all, with room to align them to a panel. */
static constexpr size_t hopper_bytes(int rows, int d) {
    return (size_t)(rows * d) * sizeof(Bf16) + SWIZZLED_BYTES;
}

/* Begins loading COLUMNS rows of two arrays into the step's half of `tiles`. */
template <int D, typename S>
static DEVICE void load_pair(Bf16 *tiles, int step, const Bf16 *a, int a_stride, const Bf16 *b,
                             int b_stride, int row, int t) {
    Bf16 *const to = tiles + step % 2 * 2 * S::COLUMNS * D;
    load_swizzled<D, S::COLUMNS, S::THREADS>(to, a, a_stride, row, t);
    load_swizzled<D, S::COLUMNS, S::THREADS>(to + S::COLUMNS * D, b, b_stride, row, t);
}

/* Computes y and lse of ROWS queries in each of n heads ceil(t / ROWS) blocks. */
template <int D, typename S>
__global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    attention_hopper(Bf16 *y, float *lse, Heads<Bf16> h) {
    constexpr int N = S::N, TILE = S::COLUMNS * D;
    DYNAMIC_SHARED(char, shared); /* q [ROWS], then for two steps k, v [COLUMNS] */
    Bf16 *const q_tile = first_panel(shared), *const kv_tiles = q_tile + S::ROWS * D;
    const int tiles = divide_up(h.t, S::ROWS), head = (int)blockIdx.x / tiles;
    const int first = (tiles - 1 - (int)blockIdx.x % tiles) * S::ROWS;
    const int group = (int)threadIdx.x / 128, group_query = first + 64 * group;
    const int warp = (int)threadIdx.x / 32, query = first + 16 * warp;
    const int steps = divide_up(keys_end(h, first + S::ROWS), S::COLUMNS);
    const Bf16 *k = h.k + at_keys(h, head, h.qk_stride), *v = h.v + at_keys(h, head, h.stride);
    const auto load = [&](int step) {
        load_pair<D, S>(kv_tiles, step, k, h.qk_stride, v, h.stride, step * S::COLUMNS, h.t);
        copy_async_commit();
    };
    load_swizzled<D, S::ROWS, S::THREADS>(q_tile, h.q + at_head(h, head, h.qk_stride), h.qk_stride,
                                          first, h.t);
    load(0);

    Softmax<1> softmax = {{{-INFINITY, -INFINITY}}, {{0, 0}}};
    float sum_v[1][D / 8][4];
    clear(sum_v);
    for (int step = 0; step < steps; step++) {
        wait_for_copies();
        __syncthreads(); /* this step's tiles are there; the last step's are free */
        if (step + 1 < steps) load(step + 1);
        const int key = step * S::COLUMNS;
        const Bf16 *k_tile = kv_tiles + step % 2 * 2 * TILE;
        if ((key >= group_query + 64 && key >= h.every) || group_query >= h.t) continue;
        float s[1][N][4];
        multiply_rows<D, S::ROWS>(s, q_tile + 64 * group * PANEL, k_tile);
        if (key + S::COLUMNS > query + 1) hide_keys(s, h, query, key);
        online_softmax<D, 1, N>(softmax, sum_v, s, h.scale * LOG2_E);
        multiply_sums<D>(sum_v, s, k_tile + TILE);
    }
    __syncthreads(); /* results are written over the tiles */
    if (query < h.t)
        finish<Bf16, D, 1>(y, lse, (float *)q_tile + 16 * warp * ROW<float, D>, softmax, sum_v, h,
                           head, query);
}

/* ---- gradients ---- */

/* Computes dots for the lane's two rows, from global memory.  Each of four lanes adds up a quarter
 * of a row. */
template <int D>
static DEVICE void memory_dots(float (&dots)[1][2], const Bf16 *dy, const Bf16 *y, int stride,
                               int query, int t) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int row = accumulator_row(query, 0, 2 * i);
        float sum = 0;
#pragma unroll
        for (int at = (int)threadIdx.x % 4 * 8; at < D; at += 32) {
            if (row >= t) continue;
            float a[8], b[8];
            load_floats(a, dy + (size_t)row * stride + at);
            load_floats(b, y + (size_t)row * stride + at);
#pragma unroll
            for (int j = 0; j < 8; j++) sum = fmaf(a[j], b[j], sum);
        }
        dots[0][i] = quad_sum(sum);
    }
}

/* Computes dq, and dots for the other kernel, of ROWS queries in each of n heads ceil(t / ROWS)
 * blocks. */
template <int D, typename S>
__global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    attention_query_gradient_hopper(Gradients<Bf16> g, Heads<Bf16> h) {
    constexpr int N = S::N, TILE = S::COLUMNS * D;
    DYNAMIC_SHARED(char, shared); /* q, dy [ROWS], then for two steps k, v [COLUMNS] */
    Bf16 *const q_tile = first_panel(shared), *const dy_tile = q_tile + S::ROWS * D;
    Bf16 *const kv_tiles = dy_tile + S::ROWS * D;
    const int tiles = divide_up(h.t, S::ROWS), head = (int)blockIdx.x / tiles;
    const int first = (tiles - 1 - (int)blockIdx.x % tiles) * S::ROWS, c = h.heads * h.d;
    const int group = (int)threadIdx.x / 128, group_query = first + 64 * group;
    const int query = first + 16 * ((int)threadIdx.x / 32);
    const int steps = divide_up(keys_end(h, first + S::ROWS), S::COLUMNS);
    const Bf16 *k = h.k + at_keys(h, head, h.qk_stride), *v = h.v + at_keys(h, head, h.stride);
    const auto load = [&](int step) {
        load_pair<D, S>(kv_tiles, step, k, h.qk_stride, v, h.stride, step * S::COLUMNS, h.t);
        copy_async_commit();
    };
    const Bf16 *dy = g.dy + at_head(h, head, c), *y = g.y + at_head(h, head, c);
    load_swizzled<D, S::ROWS, S::THREADS>(q_tile, h.q + at_head(h, head, h.qk_stride), h.qk_stride,
                                          first, h.t);
    load_swizzled<D, S::ROWS, S::THREADS>(dy_tile, dy, c, first, h.t);
    load(0);

    float dots[1][2], lse[1][2], dq[1][D / 8][4];
    memory_dots<D>(dots, dy, y, c, query, h.t);
    exchange_rows(lse, dots, g, h, head, query);
    clear(dq);
    for (int step = 0; step < steps; step++) {
        wait_for_copies();
        __syncthreads();
        if (step + 1 < steps) load(step + 1);
        const int key = step * S::COLUMNS;
        const Bf16 *k_tile = kv_tiles + step % 2 * 2 * TILE;
        if ((key >= group_query + 64 && key >= h.every) || group_query >= h.t) continue;
        float s[1][N][4], dp[1][N][4];
        multiply_rows_twice<D, S::ROWS>(s, q_tile + 64 * group * PANEL, k_tile, dp,
                                        dy_tile + 64 * group * PANEL, k_tile + TILE);
        if (key + S::COLUMNS > query + 1) hide_keys(s, h, query, key);
        score_gradient(s, dp, lse, dots, h.scale * LOG2_E);
        multiply_sums<D>(dq, s, k_tile);
    }
    __syncthreads(); /* results are written over the tiles */
    if (query < h.t)
        put_gradient<Bf16, D, 1>(g.dq + at_head(h, head, h.stride), (float *)q_tile, dq, h.scale, h,
                                 query, angles_at(h, query), g.add);
}

/* Computes dk and dv of ROWS keys in each of n groups ceil(t / ROWS) blocks. */
template <int D, typename S>
__global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    attention_key_gradient_hopper(Gradients<Bf16> g, Heads<Bf16> h) {
    constexpr int N = S::N, TILE = S::COLUMNS * D;
    DYNAMIC_SHARED(char, shared); /* k, v [ROWS], then for two steps q, dy [COLUMNS] */
    SHARED(float, numbers, [2][2 * S::COLUMNS]); /* lse and dots of two steps */
    Bf16 *const k_tile = first_panel(shared), *const v_tile = k_tile + S::ROWS * D;
    Bf16 *const q_tiles = v_tile + S::ROWS * D;
    const int tiles = divide_up(h.t, S::ROWS), thread = (int)threadIdx.x;
    int head = (int)blockIdx.x / tiles * h.share; /* of the group, for the next step to load */
    const int end = head + h.share;
    const int first = (int)blockIdx.x % tiles * S::ROWS, c = h.heads * h.d;
    const int group = thread / 128, group_key = first + 64 * group;
    const int key = first + 16 * (thread / 32), begin = queries_begin(h, first);
    const Bf16 *q = h.q + at_head(h, head, h.qk_stride), *dy = g.dy + at_head(h, head, c);
    const auto load = [&](int step, int query) {
        load_pair<D, S>(q_tiles, step, q, h.qk_stride, dy, c, query, h.t);
        load_row_numbers<S>(numbers[step % 2], g, h, head, query);
        copy_async_commit();
    };
    load_swizzled<D, S::ROWS, S::THREADS>(k_tile, h.k + at_keys(h, head, h.qk_stride), h.qk_stride,
                                          first, h.t);
    load_swizzled<D, S::ROWS, S::THREADS>(v_tile, h.v + at_keys(h, head, h.stride), h.stride, first,
                                          h.t);
    load(0, begin);

    float dk[1][D / 8][4], dv[1][D / 8][4];
    clear(dk);
    clear(dv);
    for (int step = 0, query = begin, next; head < end; step++, query = next) {
        wait_for_copies();
        __syncthreads();
        next = query + S::COLUMNS;
        if (next >= h.t) { /* on to the next head of the group */
            next = begin;
            head++, q += h.d, dy += h.d;
        }
        if (head < end) load(step + 1, next);
        const Bf16 *q_tile = q_tiles + step % 2 * 2 * TILE;
        const float *lse = numbers[step % 2], *dots = lse + S::COLUMNS;
        if ((query + S::COLUMNS <= group_key && group_key >= h.every) || group_key >= h.t) continue;
        float p[1][N][4], dp[1][N][4];
        multiply_rows_twice<D, S::ROWS>(p, k_tile + 64 * group * PANEL, q_tile, dp,
                                        v_tile + 64 * group * PANEL, q_tile + TILE);
        if (query < key + 16 || query + S::COLUMNS > h.t) hide_queries(p, h, key, query);
#pragma unroll
        for (int j = 0; j < N; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int column = accumulator_column(0, j, i);
                p[0][j][i] = exp2_fast(fmaf(p[0][j][i], h.scale * LOG2_E, -lse[column] * LOG2_E));
                dp[0][j][i] = p[0][j][i] * (dp[0][j][i] - dots[column]);
            }
        multiply_sums<D>(dv, p, q_tile + TILE);
        multiply_sums<D>(dk, dp, q_tile);
    }
    __syncthreads(); /* results are written over the tiles */
    if (key >= h.t) return;
    const size_t to = at_keys(h, end - 1, h.stride);
    put_gradient<Bf16, D, 1>(g.dk + to, (float *)k_tile, dk, h.scale, h, key, angles_at(h, key),
                             g.add);
    put_gradient<Bf16, D, 1>(g.dv + to, (float *)k_tile, dv, 1, h, key, NULL, g.add);
}

/* ---- launchers ---- */

/* Returns the bytes of a block's shared memory: enough for its tiles, and for the rows of results
 * that are written over them at the end. */
template <int D, typename S>
static constexpr size_t bytes_of(int sides) {
    constexpr size_t results = (size_t)S::ROWS * ROW<float, D> * sizeof(float);
    const size_t tiles = hopper_bytes(sides * S::ROWS + 4 * S::COLUMNS, D);
    return tiles > results + SWIZZLED_BYTES ? tiles : results + SWIZZLED_BYTES;
}

template <int D>
static void launch_forward(const Call *k, Heads<Bf16> h) {
    typedef HopperForward<D> S;
    const auto kernel = attention_hopper<D, S>;
    const size_t bytes = bytes_of<D, S>(1);
    SHARED_LIMIT(kernel, bytes);
    LAUNCH(kernel, k->n * h.heads * divide_up(h.t, S::ROWS), S::THREADS, bytes, k->run->stream,
           (Bf16 *)k->io->y, k->io->aux, h);
}

template <int D>
static void launch_gradient(const Call *k, Gradients<Bf16> g, Heads<Bf16> h) {
    typedef HopperQueries<D> Q;
    typedef HopperKeys<D> K;
    const auto queries = attention_query_gradient_hopper<D, Q>;
    const auto keys = attention_key_gradient_hopper<D, K>;
    const size_t q_bytes = bytes_of<D, Q>(2), k_bytes = bytes_of<D, K>(2);
    const int q_blocks = k->n * h.heads * divide_up(h.t, Q::ROWS);
    const int k_blocks = k->n * h.groups * divide_up(h.t, K::ROWS);
    SHARED_LIMIT(queries, q_bytes);
    LAUNCH(queries, q_blocks, Q::THREADS, q_bytes, k->run->stream, g, h);
    SHARED_LIMIT(keys, k_bytes);
    LAUNCH(keys, k_blocks, K::THREADS, k_bytes, k->run->stream, g, h);
}

void attention_hopper_forward(const Call *k, Heads<Bf16> h) {
    if (h.d == 64)
        launch_forward<64>(k, h);
    else
        launch_forward<128>(k, h);
}

void attention_hopper_gradient(const Call *k, Gradients<Bf16> g, Heads<Bf16> h) {
    if (h.d == 64)
        launch_gradient<64>(k, g, h);
    else
        launch_gradient<128>(k, g, h);
}
