/* What the attention kernels share: where the heads lie, the workspace, the shapes of tiles, the
 * softmax of a tile, and how rows of results are written. */
#ifndef CUDA_OPS_ATTENTION_CUH
#define CUDA_OPS_ATTENTION_CUH

#include <math.h>

#include "tiles.cuh"

/* The heads of a batch.  q, k, v are those of sample 0, head 0, position 0.  `share` query heads,
 * one after the other, look at the same keys and values. */
template <typename T>
struct Heads {
    const T *q, *k, *v;
    int t, heads, groups, share, d; /* heads = groups share */
    int every;             /* the first so many keys every query looks at: causal 0, else t */
    int qk_stride, stride; /* numbers from one position to the next: of q and k; of qkv and dqkv */
    int alignment;         /* bytes that rows of d numbers are aligned to */
    float scale;           /* 1 / sqrt(d) */
    const float2 *angles;  /* [t][d / 2] cosine and sine, by which q and k have been turned */
};

/* What the kernels of the gradient read and write besides the heads. */
template <typename T>
struct Gradients {
    const T *dy, *y;  /* [n][t][heads][d] */
    const float *lse; /* [n][heads][t] */
    float *dots;      /* [n][heads][t], sums over a head of dy y */
    T *dq, *dk, *dv;  /* of sample 0, head 0, rows Heads.stride apart */
    bool add;
};

/* attention_shared.cu: version 2, for heads of at most SHARED_HEAD numbers. */
enum { SHARED_HEAD = 128 };
template <typename T>
void attention_shared_forward(const Run *run, T *y, float *lse, Heads<T> h, int n);
template <typename T>
void attention_shared_gradient(const Run *run, Gradients<T> g, Heads<T> h, int n);
static inline bool is_shared(const Run *run, int d) {
    return run->version == 2 && d <= SHARED_HEAD;
}

/* attention_hopper.cu: version 4, for heads of 64 and 128 in bf16.  Everything else, and any other
 * device, takes version 3 in its place. */
void attention_hopper_forward(const Run *run, __nv_bfloat16 *y, float *lse, Heads<__nv_bfloat16> h,
                              int n);
void attention_hopper_gradient(const Run *run, Gradients<__nv_bfloat16> g, Heads<__nv_bfloat16> h,
                               int n);
/* The version that version 0 stands for; to become 4 when a GPU has shown that to be faster. */
enum { ATTENTION_BEST = 3 };
static inline bool is_hopper(const Run *run, int d) {
    return (run->version ? run->version : (int)ATTENTION_BEST) == 4 &&
           run->precision == PRECISION_BF16 && (d == 64 || d == 128) && device_has_wgmma();
}

/* The arrays of query head `head` of all samples' heads, and the keys and values it looks at. */
template <typename T>
static __device__ __forceinline__ size_t at_head(const Heads<T> &h, int head, int stride) {
    return (size_t)(head / h.heads) * (size_t)h.t * (size_t)stride +
           (size_t)(head % h.heads) * (size_t)h.d;
}
template <typename T>
static __device__ __forceinline__ size_t at_keys(const Heads<T> &h, int head, int stride) {
    return (size_t)(head / h.heads) * (size_t)h.t * (size_t)stride +
           (size_t)(head % h.heads / h.share) * (size_t)h.d;
}

/* The end of the keys that queries before `end` look at, and the first query that looks at keys
 * from `key` on. */
template <typename T>
static __device__ __forceinline__ int keys_end(const Heads<T> &h, int end) {
    return max(min(end, h.t), h.every);
}
template <typename T>
static __device__ __forceinline__ int queries_begin(const Heads<T> &h, int key) {
    return key < h.every ? 0 : key;
}

/* Of a position and on; NULL without rope. */
template <typename T>
static __device__ __forceinline__ const float2 *angles_at(const Heads<T> &h, int position) {
    return h.angles ? h.angles + (size_t)position * (size_t)(h.d / 2) : NULL;
}

/* Over the four lanes that hold a row of an accumulator. */
static __device__ __forceinline__ float quad_sum(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}
static __device__ __forceinline__ float quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

/* ---- Workspace ----------------------------------------------------------------------------- */

/* dots, for each query the sum of dy y, then with rope the angles and the turned q and k. */
typedef struct {
    float *dots;    /* [n][heads][t] */
    float2 *angles; /* [t][d / 2] */
    void *turned;   /* [n][t][heads + groups][d] */
    size_t bytes;
} AttentionSpace;

AttentionSpace attention_space(void *workspace, Precision precision, int n, int t, Attention a);

/* rope.cu: fills space.angles, and space.turned with the q and k of qkv, turned. */
void rope_turn(const Run *run, AttentionSpace space, const void *qkv, int n, int t, Attention a);

/* With rotary positions also turns q and k into the workspace. */
template <typename T>
static Heads<T> find_heads(const Run *run, AttentionSpace space, const T *qkv, int n, int t,
                           Attention a) {
    const bool turned = a.rope.base > 0;
    if (turned) rope_turn(run, space, qkv, n, t, a);
    const T *q = turned ? (const T *)space.turned : qkv;
    return {q,
            q + a.heads * a.d,
            qkv + (a.heads + a.groups) * a.d,
            t,
            a.heads,
            a.groups,
            a.heads / a.groups,
            a.d,
            a.causal ? 0 : t,
            (a.heads + (turned ? 1 : 2) * a.groups) * a.d,
            (a.heads + 2 * a.groups) * a.d,
            row_alignment<T>(a.d),
            (float)(1 / sqrt((double)a.d)),
            turned ? space.angles : NULL};
}

/* ---- Results ------------------------------------------------------------------------------- */

/* W numbers to[] = x, or += x. */
template <typename T, int W>
static __device__ __forceinline__ void put(T *to, float (&x)[W], bool add) {
    if (add) {
        float old[W];
        load_floats(old, to);
#pragma unroll
        for (int i = 0; i < W; i++) x[i] += old[i];
    }
    store_floats(to, x);
}

/* W numbers of a row x in shared memory, from `at` on.  With angles the row is the gradient of a
 * turned one and is turned back, half-split: numbers i and i + half are a pair (ref/fast/rope.h).
 */
template <int W>
static __device__ __forceinline__ void turn_back(float (&out)[W], const float *x, int at, int half,
                                                 const float2 *angles) {
    constexpr int V = W % 4 == 0 ? 4 : 1;
    const bool first = at < half;
#pragma unroll
    for (int i = 0; i < W; i += V) {
        float mine[V], other[V];
        load_floats(mine, x + at + i);
        if (angles) load_floats(other, x + (first ? at + half : at - half) + i);
#pragma unroll
        for (int j = 0; j < V; j++) {
            out[i + j] = mine[j];
            if (!angles) continue;
            const float2 turn = angles[(first ? at : at - half) + i + j];
            out[i + j] = mine[j] * turn.x + (first ? other[j] : -other[j]) * turn.y;
        }
    }
}

/* A warp writes rows of d numbers from shared memory, W numbers a lane, ACROSS lanes a row; angles:
 * of the first row. */
template <typename T, int W, int ACROSS>
static __device__ __forceinline__ void put_rows(T *to, int stride, const float *from,
                                                int from_stride, int rows, int d,
                                                const float2 *angles, bool add) {
    constexpr int DOWN = 32 / ACROSS;
    const int lane = (int)threadIdx.x % 32, half = d / 2;
    if (ACROSS * DOWN < 32 && lane >= ACROSS * DOWN) return;
#pragma unroll 2
    for (int row = lane / ACROSS; row < rows; row += DOWN) {
#pragma unroll 1
        for (int at = lane % ACROSS * W; at < d; at += ACROSS * W) {
            float x[W];
            turn_back<W>(x, from + row * from_stride, at, half,
                         angles ? angles + row * half : NULL);
            put<T, W>(to + row * stride + at, x, add);
        }
    }
}

/* Of padded heads, 16 bytes at a time where the rows allow it. */
template <typename T, int D>
static __device__ __forceinline__ void put_tile(T *to, int stride, const float *from, int rows,
                                                int d, const float2 *angles, bool add) {
    constexpr int PACKS = D / CHUNK<T>;
    if ((angles ? d / 2 : d) % CHUNK<T> == 0)
        put_rows<T, CHUNK<T>, PACKS>(to, stride, from, ROW<float, D>, rows, d, angles, add);
    else
        put_rows<T, 1, 32>(to, stride, from, ROW<float, D>, rows, d, angles, add);
}

/* ---- Tiles --------------------------------------------------------------------------------- */

#define LOG2_E 1.44269504f
#define SHARED_MOST ((size_t)(99 * 1024)) /* of a block, on the least of the architectures */

/* Shapes of the tiled kernels.  A block has WARPS warps of 16 M rows each, and goes through the
 * other side COLUMNS at a time, two tiles of them in flight.  Chosen for registers (accumulators
 * and fragments below 255, no spills) and for shared memory that fits 99 KB, the least of the
 * architectures built for. */
template <int WARPS_, int M_, int COLUMNS_, bool HELD_>
struct Shape {
    static constexpr int WARPS = WARPS_, M = M_, COLUMNS = COLUMNS_;
    static constexpr bool HELD = HELD_; /* left sides in registers */
    static constexpr int THREADS = 32 * WARPS, ROWS = 16 * M * WARPS;
    static_assert(ROWS % COLUMNS == 0, "tiles begin at multiples of each other");
};

/* Starts copying a block's ROWS rows of a head, from `row` of its t on; zeros beyond the last. */
template <typename T, int D, typename S>
static __device__ __forceinline__ void load_side(T *tile, const T *head, int stride, int row,
                                                 const Heads<T> &h) {
    load_tile<T, D, S::ROWS, S::THREADS>(tile, head + (size_t)row * (size_t)stride, stride,
                                         h.t - row, h.d, h.alignment);
}

/* The same of COLUMNS rows of two arrays, keys and values or queries and dy: a[COLUMNS] in front of
 * b[COLUMNS], in the half of tiles that is `step`'s. */
template <typename T, int D, typename S>
static __device__ __forceinline__ void load_step(T *tiles, int step, const T *a, int a_stride,
                                                 const T *b, int b_stride, int row,
                                                 const Heads<T> &h) {
    constexpr int TILE = S::COLUMNS * ROW<T, D>;
    T *const to = tiles + step % 2 * 2 * TILE;
    load_tile<T, D, S::COLUMNS, S::THREADS>(to, a + (size_t)row * (size_t)a_stride, a_stride,
                                            h.t - row, h.d, h.alignment);
    load_tile<T, D, S::COLUMNS, S::THREADS>(to + TILE, b + (size_t)row * (size_t)b_stride, b_stride,
                                            h.t - row, h.d, h.alignment);
}

/* The head size that the kernels are compiled for; 0: none. */
static inline int padded_head(int d) {
    return d <= 32 ? 32 : d <= 64 ? 64 : d <= 96 ? 96 : d <= 128 ? 128 : 0;
}

/* Version 3 copies rows by 4 bytes or more: no odd heads of bf16. */
static inline bool tiles_can(const Run *run, int d) {
    return run->version != 1 && padded_head(d) && d * (int)value_size(run->precision) % 4 == 0;
}

/* The row and column of number i of accumulator [m][j], in rows from `row` and columns from
 * `column` on. */
static __device__ __forceinline__ int accumulator_row(int row, int m, int i) {
    return row + 16 * m + i / 2 * 8 + (int)threadIdx.x % 32 / 4;
}
static __device__ __forceinline__ int accumulator_column(int column, int j, int i) {
    return column + 8 * j + (int)threadIdx.x % 4 * 2 + i % 2;
}

/* Scores that get no probability: of keys that the query does not look at, in rows of queries. */
template <typename T, int M, int N>
static __device__ __forceinline__ void hide_keys(float (&s)[M][N][4], const Heads<T> &h, int query,
                                                 int key) {
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int j = 0; j < N; j++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (accumulator_column(key, j, i) > accumulator_row(query, m, i) &&
                    accumulator_column(key, j, i) >= h.every)
                    s[m][j][i] = -INFINITY;
}

/* The same transposed: of queries that do not look at the key or are after the last, in rows of
 * keys. */
template <typename T, int M, int N>
static __device__ __forceinline__ void hide_queries(float (&s)[M][N][4], const Heads<T> &h, int key,
                                                    int query) {
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int j = 0; j < N; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int column = accumulator_column(query, j, i);
                const int row = accumulator_row(key, m, i);
                if ((column < row && row >= h.every) || column >= h.t) s[m][j][i] = -INFINITY;
            }
}

/* ---- Softmax and results of tiles ---------------------------------------------------------- */

/* The softmax of a warp's rows so far.  Sums are of this lane's columns only, until the end. */
template <int M>
struct Softmax {
    float most[M][2], sum[M][2];
};

/* Finds the new maxima, scales the sums and y down to them, and turns s into probabilities to be
 * divided by the sum.  scale includes log2(e). */
template <int D, int M, int N>
static __device__ __forceinline__ void online_softmax(Softmax<M> &softmax, float (&y)[M][D / 8][4],
                                                      float (&s)[M][N][4], float scale) {
    float shrink[M][2];
    bool grown = false;
#pragma unroll
    for (int m = 0; m < 2 * M; m++) {
        const float old = softmax.most[m / 2][m % 2];
        float now = old;
#pragma unroll
        for (int j = 0; j < 2 * N; j++) now = fmaxf(now, s[m / 2][j / 2][m % 2 * 2 + j % 2]);
        now = quad_max(now); /* a NaN is lost here, but not in s */
        shrink[m / 2][m % 2] = exp2_fast((old - now) * scale);
        grown |= now > old;
        softmax.most[m / 2][m % 2] = now;
        float sum = 0;
#pragma unroll
        for (int j = 0; j < 2 * N; j++) {
            float &p = s[m / 2][j / 2][m % 2 * 2 + j % 2];
            p = exp2_fast(fmaf(p, scale, -now * scale));
            sum += p;
        }
        softmax.sum[m / 2][m % 2] = fmaf(softmax.sum[m / 2][m % 2], shrink[m / 2][m % 2], sum);
    }
    if (!__any_sync(0xffffffffu, grown)) return; /* most of the time, after the first keys */
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int k = 0; k < D / 8; k++)
#pragma unroll
            for (int i = 0; i < 4; i++) y[m][k][i] *= shrink[m][i / 2];
}

/* Divides by the sums, and writes y and the log-sum-exp of a warp's rows. */
template <typename T, int D, int M>
static __device__ __forceinline__ void finish(T *y, float *lse, float *stage,
                                              const Softmax<M> &softmax,
                                              const float (&sum_v)[M][D / 8][4], const Heads<T> &h,
                                              int head, int query) {
    float factor[M][2];
#pragma unroll
    for (int m = 0; m < 2 * M; m++) {
        const float sum = quad_sum(softmax.sum[m / 2][m % 2]);
        factor[m / 2][m % 2] = 1 / sum;
        const int row = accumulator_row(query, m / 2, m % 2 * 2);
        if (threadIdx.x % 4 == 0 && row < h.t)
            lse[(size_t)head * (size_t)h.t + (size_t)row] =
                softmax.most[m / 2][m % 2] * h.scale + logf(sum);
    }
    stage_rows<D, M>(stage, sum_v, factor);
    __syncwarp();
    const int c = h.heads * h.d;
    put_tile<T, D>(y + at_head(h, head, c) + (size_t)query * (size_t)c, c, stage,
                   min(16 * M, h.t - query), h.d, NULL, false);
}

/* Writes a warp's rows of a head's gradient, times factor; `stage` is the block's. */
template <typename T, int D, int M>
static __device__ __forceinline__ void put_gradient(T *to, float *stage,
                                                    const float (&sum)[M][D / 8][4], float factor,
                                                    const Heads<T> &h, int row,
                                                    const float2 *angles, bool add) {
    float *const mine = stage + (int)threadIdx.x / 32 * 16 * M * ROW<float, D>;
    float factors[M][2];
#pragma unroll
    for (int m = 0; m < M; m++) factors[m][0] = factors[m][1] = factor;
    __syncwarp(); /* what was staged before is out */
    stage_rows<D, M>(mine, sum, factors);
    __syncwarp();
    put_tile<T, D>(to + (size_t)row * (size_t)h.stride, h.stride, mine, min(16 * M, h.t - row), h.d,
                   angles, add);
}

#endif
