/* What all attention kernels share: where the heads lie, the workspace, and how rows of results are
 * written. */
#pragma once

#include <math.h>

#include "tiles.cuh"

/* The heads of a batch.  q, k, v are those of sample 0, head 0, position 0.  `share` neighbouring
 * query heads attend to the same keys and values. */
template <typename T>
struct Heads {
    const T *q, *k, *v;
    int t, heads, groups, share, d; /* heads = groups share */
    int every;  /* the number of keys that every query attends to: causal 0, else t */
    int window; /* causal: a query attends to at most so many keys, the last ones; else t */
    int qk_stride, stride; /* numbers from one position to the next: of q and k; of qkv and dqkv */
    int alignment;         /* bytes that rows of d numbers are aligned to: 16, 8, 4, or 2 */
    float scale;           /* 1 / sqrt(d) */
    const float2 *angles;  /* [t][d / 2] cosine and sine, by which q and k have been rotated */
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

/* ---- Versions ----
 *
 *   1  a warp for each query or key   attention_rows.cu: heads of at most
 *                                     ATTENTION_MAX_HEAD numbers
 *   2  tiles on tensor cores          attention.cu, attention_gradient.cu: heads of at most
 *                                     TILED_HEAD numbers
 *   3  the same by warpgroups         attention_hopper.cuh: bf16 heads of 64 and 128, on devices of
 *                                     compute capability 9.0 */

/* The version that version 0 stands for; to become 3 when a GPU has shown that to be faster. */
enum { ATTENTION_BEST = 2 };
enum { TILED_HEAD = 128 };

/* Returns the version that runs when `wanted` is asked for: the same or, for heads of d numbers
 * that it cannot take, the next lower one that can. */
static inline int attention_version(Precision precision, int wanted, int d) {
    const bool bf16 = precision == PRECISION_BF16;
    int version = wanted ? wanted : (int)ATTENTION_BEST;
    if (version == 3 && !(bf16 && (d == 64 || d == 128) && device_has_wgmma())) version = 2;
    return d > TILED_HEAD ? 1 : version;
}

template <typename T>
void attention_rows_forward(const Call *k, Heads<T> h);
template <typename T>
void attention_rows_gradient(const Call *k, Gradients<T> g, Heads<T> h);

/* Return where query head `head`, counted over all samples, starts in an array whose positions lie
 * `stride` apart, and where the keys or values it attends to start. */
template <typename T>
static DEVICE size_t at_head(const Heads<T> &h, int head, int stride) {
    return (size_t)(head / h.heads) * h.t * stride + (size_t)(head % h.heads) * h.d;
}
template <typename T>
static DEVICE size_t at_keys(const Heads<T> &h, int head, int stride) {
    return (size_t)(head / h.heads) * h.t * stride + (size_t)(head % h.heads / h.share) * h.d;
}

/* Return the first key that queries from `query` on attend to and the end of those that queries
 * before `end` do; the first query that attends to keys from `key` on, and the end of those that
 * attend to keys before `end`. */
template <typename T>
static DEVICE int keys_begin(const Heads<T> &h, int query) {
    return max(query - h.window + 1, 0);
}
template <typename T>
static DEVICE int keys_end(const Heads<T> &h, int end) {
    return max(min(end, h.t), h.every);
}
template <typename T>
static DEVICE int queries_begin(const Heads<T> &h, int key) {
    return key < h.every ? 0 : key;
}

template <typename T>
static DEVICE int queries_end(const Heads<T> &h, int end) {
    return h.window < h.t ? min(min(end, h.t) - 1 + h.window, h.t) : h.t;
}

/* Returns the angles from this position on; NULL without rope. */
template <typename T>
static DEVICE const float2 *angles_at(const Heads<T> &h, int position) {
    return h.angles ? h.angles + (size_t)position * (h.d / 2) : NULL;
}

/* On the host: calls launch(P) with the run's precision. */
template <typename Launch>
static void with_precision(const Run *run, const Launch &launch) {
    if (run->precision == PRECISION_BF16)
        launch(Constant<PRECISION_BF16>());
    else if (run->precision == PRECISION_TF32)
        launch(Constant<PRECISION_TF32>());
    else
        launch(Constant<PRECISION_FP32>());
}

/* ---- Workspace ---- */

/* The workspace: dots, for each query the sum of dy y; then with rope the angles, and q and k
 * rotated by them. */
typedef struct {
    float *dots;    /* [n][heads][t] */
    float2 *angles; /* [t][d / 2] */
    void *rotated;  /* [n][t][heads + groups][d] */
    size_t bytes;
} AttentionSpace;

AttentionSpace attention_space(const Call *k);

/* rope.cu: overwrites space.angles, and space.rotated with the q and k of the call's x, rotated. */
void rope_rotate(const Call *k, AttentionSpace space);

/* Returns the heads of the call's x.  With rotary positions it also writes q and k, rotated, to the
 * workspace, and the heads refer to these. */
template <typename T>
static Heads<T> find_heads(const Call *k, AttentionSpace space) {
    const Attention &a = k->node->attention;
    const bool rotated = a.rope.base > 0;
    const int row_bytes = a.d * (int)sizeof(T);
    if (rotated) rope_rotate(k, space);
    const T *qkv = (const T *)k->io->x, *q = rotated ? (const T *)space.rotated : qkv;
    Heads<T> h = {};
    h.q = q, h.k = q + a.heads * a.d, h.v = qkv + (a.heads + a.groups) * a.d;
    h.t = k->positions, h.d = a.d;
    h.heads = a.heads, h.groups = a.groups, h.share = a.heads / a.groups;
    h.every = a.causal ? 0 : h.t;
    h.window = a.causal && a.window && a.window < h.t ? a.window : h.t;
    h.stride = (a.heads + 2 * a.groups) * a.d;
    h.qk_stride = (a.heads + (rotated ? 1 : 2) * a.groups) * a.d;
    h.alignment = row_bytes % 16 == 0 ? 16 : row_bytes % 8 == 0 ? 8 : row_bytes % 4 == 0 ? 4 : 2;
    h.scale = (float)(1 / sqrt((double)a.d));
    h.angles = rotated ? space.angles : NULL;
    return h;
}

/* ---- Results ---- */

/* Loads W numbers of a row x in shared memory, from `at` on.  With angles the row is the gradient
 * of a rotated one and is rotated back, half-split: numbers i and i + half are a pair
 * (ref/fast/rope.h). */
template <int W>
static DEVICE void turn_back(float (&out)[W], const float *x, int at, int half,
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

/* Writes rows of d numbers from shared memory to global memory, by one warp: W numbers a lane,
 * ACROSS lanes a row.  `angles` are those of the first row, or NULL. */
template <typename T, int W, int ACROSS>
static DEVICE void put_rows(T *to, int stride, const float *from, int from_stride, int rows, int d,
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
            put(to + row * stride + at, x, add);
        }
    }
}
