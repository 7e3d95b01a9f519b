/* What the attention kernels on tiles share: the shapes of tiles, how they are loaded and masked,
 * the softmax of a tile, how its results are written; and version 2's way to multiply. */
#pragma once

#include "attention.cuh"

/* Shapes of the tiled kernels.  A block has WARPS warps of 16 M rows each, and goes through the
 * other side COLUMNS at a time, two tiles of them in flight.  The shapes are chosen so that
 * accumulators and fragments fit in 255 registers without spills, and the tiles in shared memory.
 */
template <int WARPS_, int M_, int COLUMNS_, bool HELD_>
struct TileShape {
    static constexpr int WARPS = WARPS_, M = M_, COLUMNS = COLUMNS_;
    static constexpr bool HELD = HELD_; /* left sides in registers */
    static constexpr int N = COLUMNS / 8, THREADS = 32 * WARPS, ROWS = 16 * M * WARPS;
    static_assert(ROWS % COLUMNS == 0, "tiles begin at multiples of each other");
};

/* On the host: calls launch(D) with the smallest compiled size that holds heads of d numbers, which
 * are padded to it with zeros. */
template <typename Launch>
static void with_padded_head(int d, const Launch &launch) {
    if (d <= 32)
        launch(Constant<32>());
    else if (d <= 64)
        launch(Constant<64>());
    else if (d <= 96)
        launch(Constant<96>());
    else
        launch(Constant<(int)TILED_HEAD>());
}

/* ---- Loading ---- */

/* Starts copying 16 bytes of a row of which `left` numbers exist, maybe none; the rest becomes
 * zero.
 */
template <typename T, int ALIGNMENT>
static DEVICE void copy_chunk(T *to, const T *from, int left) {
    if constexpr (ALIGNMENT == 16) {
        copy_async16(to, from, left > 0);
    } else if constexpr (ALIGNMENT == 8) {
#pragma unroll
        for (int i = 0; i < CHUNK<T>; i += CHUNK<T> / 2)
            copy_async8(to + i, left > i ? from + i : from, left > i);
    } else {
#pragma unroll
        for (int i = 0; i < CHUNK<T>; i += CHUNK<T> / 4)
            copy_async4(to + i, left > i ? from + i : from, left > i);
    }
}

/* Starts copying rows of d <= D numbers, `stride` apart, into tile[ROWS]; zeros beyond d and from
 * row `rows` on.  All THREADS of a block call it; each copies its part of every STEPth row. */
template <typename T, int D, int ROWS, int THREADS, int ALIGNMENT>
static DEVICE void load_rows(T *tile, const T *from, int stride, int rows, int d) {
    constexpr int CHUNKS = D / CHUNK<T>, STEP = THREADS / CHUNKS;
    const int start = (int)threadIdx.x / CHUNKS, at = (int)threadIdx.x % CHUNKS * CHUNK<T>;
    if (THREADS % CHUNKS != 0 && start >= STEP) return;
    tile += start * ROW<T, D> + at;
    if (at >= d) rows = 0;
#pragma unroll(ALIGNMENT == 16 ? 2 : 1)
    for (int i = 0; i < ROWS; i += STEP) {
        if (ROWS % STEP != 0 && start + i >= ROWS) break;
        const bool inside = start + i < rows;
        copy_chunk<T, ALIGNMENT>(tile + i * ROW<T, D>,
                                 from + (inside ? (start + i) * stride + at : 0),
                                 inside ? d - at : 0);
    }
}

/* Copies such rows where they are only aligned to 2 bytes, as those of odd heads in bf16 are: the
 * smallest asynchronous copy has 4. */
template <typename T, int D, int ROWS, int THREADS>
static DEVICE void load_numbers(T *tile, const T *from, int stride, int rows, int d) {
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < ROWS * D; i += THREADS) {
        const int row = i / D, at = i % D;
        const bool inside = row < rows && at < d;
        tile[row * ROW<T, D> + at] = inside ? from[row * stride + at] : from_float<T>(0);
    }
}

template <typename T, int D, int ROWS, int THREADS>
static DEVICE void load_tile(T *tile, const T *from, int stride, int rows, int d, int alignment) {
    if (alignment == 16)
        load_rows<T, D, ROWS, THREADS, 16>(tile, from, stride, rows, d);
    else if (alignment == 8)
        load_rows<T, D, ROWS, THREADS, 8>(tile, from, stride, rows, d);
    else if (sizeof(T) == 4 || alignment == 4)
        load_rows<T, D, ROWS, THREADS, 4>(tile, from, stride, rows, d);
    else
        load_numbers<T, D, ROWS, THREADS>(tile, from, stride, rows, d);
}

/* ---- A way to multiply ----
 *
 * The kernels are templates on a W, which says how tiles lie in shared memory and who multiplies
 * them: Warps here, for version 2, Warpgroups in attention_hopper.cuh for version 3.  A block has
 * sides of ROWS rows and steps of COLUMNS; UNIT of its rows belong to UNIT_THREADS threads that
 * multiply together, 16 M of them to each warp.  A left side is taken once, and then
 *
 *   W::dots(c, left, b)   c = left b^T
 *   W::sums(c, p, b)      c += p b, with p in accumulators
 */

/* A warp by itself multiplies by the products of tiles.cuh. */
template <Precision P, int D_, typename Shape>
struct Warps : Shape {
    using Shape::COLUMNS, Shape::M, Shape::N, Shape::ROWS, Shape::THREADS;
    typedef typename ValueOf<P>::type T;
    typedef LeftSide<P, D_, M, Shape::HELD> Left;
    static constexpr int D = D_, SIDE = ROWS * ROW<T, D>, TILE = COLUMNS * ROW<T, D>;
    static constexpr int UNIT = 16 * M, UNIT_THREADS = 32, BLOCKS = 256 / THREADS;
    static constexpr size_t MAX_BYTES = SHARED_MAX;
    static constexpr bool IN_PAIRS = false;

    /* The bytes of `sides` sides and two steps of two tiles. */
    static constexpr size_t bytes(int sides) {
        static_assert(SIDE + 4 * TILE >= ROWS * ROW<float, D> * (int)(sizeof(float) / sizeof(T)),
                      "results are written over the tiles");
        return (size_t)(sides * SIDE + 4 * TILE) * sizeof(T);
    }
    static DEVICE T *first(void *shared) { return (T *)shared; }

    /* Starts copying a block's ROWS rows of a head, from `row` of its t on; zeros beyond the last.
     */
    static DEVICE void load_side(T *tile, const T *head, int stride, int row, const Heads<T> &h) {
        load_tile<T, D, ROWS, THREADS>(tile, head + (size_t)row * stride, stride, h.t - row, h.d,
                                       h.alignment);
    }
    /* Starts copying COLUMNS such rows of one of the two arrays of a step. */
    static DEVICE void load_step(T *tile, const T *head, int stride, int row, const Heads<T> &h) {
        load_tile<T, D, COLUMNS, THREADS>(tile, head + (size_t)row * stride, stride, h.t - row, h.d,
                                          h.alignment);
    }
    static DEVICE void wait(void) { copy_async_wait<0>(); }

    /* Returns the rows of the warp. */
    static DEVICE const T *own(const T *side) {
        return side + 16 * M * ((int)threadIdx.x / 32) * ROW<T, D>;
    }
    static DEVICE void take(Left &left, const T *side) { left.take(own(side)); }
    static DEVICE void dots(float (&c)[M][N][4], const Left &left, const T *b) {
        clear(c);
        multiply_qkt<P, D, M, N>(c, left, b);
    }
    static DEVICE void dots(float (&c)[M][N][4], const Left &left, const T *b, float (&d)[M][N][4],
                            const Left &other, const T *e) {
        dots(c, left, b);
        dots(d, other, e);
    }
    static DEVICE void sums(float (&c)[M][D / 8][4], const float (&p)[M][N][4], const T *b) {
        multiply_pv<P, D, M, N>(c, p, b);
    }
};

/* Starts copying COLUMNS rows of two arrays, keys and values or queries and dy, into the half of
 * `tiles` that belongs to this step: a[COLUMNS], then b[COLUMNS]. */
template <typename W, typename T>
static DEVICE void load_pair(T *tiles, int step, const T *a, int a_stride, const T *b, int b_stride,
                             int row, const Heads<T> &h) {
    T *const to = tiles + step % 2 * 2 * W::TILE;
    W::load_step(to, a, a_stride, row, h);
    W::load_step(to + W::TILE, b, b_stride, row, h);
}

/* ---- Masks ---- */

/* Return the row and the column of number i of accumulator [m][j], whose tile starts at `row` and
 * `column`. */
static DEVICE int accumulator_row(int row, int m, int i) {
    return row + 16 * m + i / 2 * 8 + (int)threadIdx.x % 32 / 4;
}
static DEVICE int accumulator_column(int column, int j, int i) {
    return column + 8 * j + (int)threadIdx.x % 4 * 2 + i % 2;
}

/* Return true if none of UNIT queries attends to any of COLUMNS keys, or if not each of 16 M
 * queries does to all of them. */
template <typename W, typename T>
static DEVICE bool no_keys(const Heads<T> &h, int unit, int key) {
    return (key >= unit + W::UNIT && key >= h.every) || unit >= h.t ||
           key + W::COLUMNS <= keys_begin(h, unit);
}
template <typename W, typename T>
static DEVICE bool some_keys(const Heads<T> &h, int query, int key) {
    return key + W::COLUMNS > query + 1 || key < keys_begin(h, query + 16 * W::M - 1);
}

/* Sets to -infinity the scores of keys that the query does not attend to.  Rows are queries.  Keys
 * after the query are at a negative distance, which is a large one without a sign: a single
 * comparison takes one register less, without which the kernel for dq would spill. */
template <typename T, int M, int N>
static DEVICE void hide_keys(float (&s)[M][N][4], const Heads<T> &h, int query, int key) {
    each_number<M, N>([&](int m, int j, int i) {
        const int column = accumulator_column(key, j, i), row = accumulator_row(query, m, i);
        if (column >= h.every && (unsigned)(row - column) >= (unsigned)h.window)
            s[m][j][i] = -INFINITY;
    });
}

/* Sets to -infinity the scores of queries that do not attend to the key or come after the last one.
 * Rows are keys. */
template <typename T, int M, int N>
static DEVICE void hide_queries(float (&s)[M][N][4], const Heads<T> &h, int key, int query) {
    each_number<M, N>([&](int m, int j, int i) {
        const int column = accumulator_column(query, j, i), row = accumulator_row(key, m, i);
        if ((column < row && row >= h.every) || column >= h.t || column >= row + h.window)
            s[m][j][i] = -INFINITY;
    });
}

/* ---- Softmax and results ---- */

/* Return the sum and the largest over the four lanes that hold a row of an accumulator. */
static DEVICE float quad_sum(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}
static DEVICE float quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

/* The softmax of a warp's rows so far.  Sums are of this lane's columns only, until the end. */
template <int M>
struct Softmax {
    float max[M][2], sum[M][2];
};

/* Finds the new maxima, scales the sums and y down to them, and turns s into probabilities to be
 * divided by the sum.  scale includes log2(e). */
template <int D, int M, int N>
static DEVICE void online_softmax(Softmax<M> &softmax, float (&y)[M][D / 8][4], float (&s)[M][N][4],
                                  float scale) {
    float rescale[M][2];
    bool grown = false;
#pragma unroll
    for (int m = 0; m < 2 * M; m++) {
        const float old = softmax.max[m / 2][m % 2];
        float now = old;
#pragma unroll
        for (int j = 0; j < 2 * N; j++) now = fmaxf(now, s[m / 2][j / 2][m % 2 * 2 + j % 2]);
        now = quad_max(now); /* a NaN is lost here, but not in s */
        softmax.max[m / 2][m % 2] = now;
        if (now == -INFINITY) now = 0; /* no key yet: a window begins later; powers are 0 */
        rescale[m / 2][m % 2] = exp2_fast((old - now) * scale);
        grown |= now > old;
        float sum = 0;
#pragma unroll
        for (int j = 0; j < 2 * N; j++) {
            float &p = s[m / 2][j / 2][m % 2 * 2 + j % 2];
            p = exp2_fast(fmaf(p, scale, -now * scale));
            sum += p;
        }
        softmax.sum[m / 2][m % 2] = fmaf(softmax.sum[m / 2][m % 2], rescale[m / 2][m % 2], sum);
    }
    if (!__any_sync(0xffffffffu, grown)) return; /* most of the time, after the first keys */
    each_number<M, D / 8>([&](int m, int k, int i) { y[m][k][i] *= rescale[m][i / 2]; });
}

/* A warp writes rows of a padded head, 16 bytes at a time where the rows allow it. */
template <typename T, int D>
static DEVICE void put_tile(T *to, int stride, const float *from, int rows, int d,
                            const float2 *angles, bool add) {
    constexpr int PACKS = D / CHUNK<T>;
    if ((angles ? d / 2 : d) % CHUNK<T> == 0)
        put_rows<T, CHUNK<T>, PACKS>(to, stride, from, ROW<float, D>, rows, d, angles, add);
    else
        put_rows<T, 1, 32>(to, stride, from, ROW<float, D>, rows, d, angles, add);
}

/* Divides by the sums, and writes y and the log-sum-exp of a warp's rows. */
template <typename T, int D, int M>
static DEVICE void finish(T *y, float *lse, float *stage, const Softmax<M> &softmax,
                          const float (&sum_v)[M][D / 8][4], const Heads<T> &h, int head,
                          int query) {
    float factor[M][2];
#pragma unroll
    for (int m = 0; m < 2 * M; m++) {
        const float sum = quad_sum(softmax.sum[m / 2][m % 2]);
        factor[m / 2][m % 2] = 1 / sum;
        const int row = accumulator_row(query, m / 2, m % 2 * 2);
        if (threadIdx.x % 4 == 0 && row < h.t)
            lse[(size_t)head * h.t + row] = softmax.max[m / 2][m % 2] * h.scale + logf(sum);
    }
    stage_rows<D, M>(stage, sum_v, factor);
    __syncwarp();
    const int c = h.heads * h.d;
    put_tile<T, D>(y + at_head(h, head, c) + (size_t)query * c, c, stage, min(16 * M, h.t - query),
                   h.d, NULL, false);
}

/* ---- Gradients ---- */

/* Loads lse, times log2(e), of a warp's queries, and leaves their dots for the kernel of the keys.
 */
template <typename T, int M>
static DEVICE void exchange_rows(float (&lse)[M][2], const float (&dots)[M][2],
                                 const Gradients<T> &g, const Heads<T> &h, int head, int query) {
#pragma unroll
    for (int m = 0; m < 2 * M; m++) {
        const int row = accumulator_row(query, m / 2, m % 2 * 2);
        const size_t at = (size_t)head * h.t + row;
        lse[m / 2][m % 2] = row < h.t ? g.lse[at] * LOG2_E : 0;
        if (row < h.t && threadIdx.x % 4 == 0) g.dots[at] = dots[m / 2][m % 2];
    }
}

/* Turns scores s into p (dp - dots), where p = exp(s - lse).  Rows are queries; scale includes
 * log2(e). */
template <int M, int N>
static DEVICE void score_gradient(float (&s)[M][N][4], const float (&dp)[M][N][4],
                                  const float (&lse)[M][2], const float (&dots)[M][2],
                                  float scale) {
    each_number<M, N>([&](int m, int j, int i) {
        const float p = exp2_fast(fmaf(s[m][j][i], scale, -lse[m][i / 2]));
        s[m][j][i] = p * (dp[m][j][i] - dots[m][i / 2]);
    });
}

/* Starts copying lse of COLUMNS queries to `numbers`, and then their dots; a thread for each. */
template <typename S, typename T>
static DEVICE void load_row_numbers(float *numbers, const Gradients<T> &g, const Heads<T> &h,
                                    int head, int query) {
    static_assert(2 * S::COLUMNS <= S::THREADS, "a thread for each number");
    const int thread = (int)threadIdx.x, at = query + thread % S::COLUMNS;
    if (thread >= 2 * S::COLUMNS) return;
    const float *from = (thread < S::COLUMNS ? g.lse : g.dots) + (size_t)head * h.t;
    copy_async4(numbers + thread, from + (at < h.t ? at : 0), at < h.t);
}

/* Writes a warp's rows of a head's gradient, times factor; `stage` is the block's. */
template <typename T, int D, int M>
static DEVICE void put_gradient(T *to, float *stage, const float (&sum)[M][D / 8][4], float factor,
                                const Heads<T> &h, int row, const float2 *angles, bool add) {
    float *const mine = stage + (int)threadIdx.x / 32 * 16 * M * ROW<float, D>;
    float factors[M][2];
#pragma unroll
    for (int m = 0; m < M; m++) factors[m][0] = factors[m][1] = factor;
    __syncwarp(); /* what was staged before is out */
    stage_rows<D, M>(mine, sum, factors);
    __syncwarp();
    put_tile<T, D>(to + (size_t)row * h.stride, h.stride, mine, min(16 * M, h.t - row), h.d, angles,
                   add);
}
