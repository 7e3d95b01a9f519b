/* Multi-head attention (Vaswani et al. 2017, eq. 1) in tiles of queries and keys that stay in
 * cache.  The softmax is online: its maximum and sum are updated from tile to tile.  The backward
 * pass recomputes the probabilities from the log-sum-exp of each row (FlashAttention, Dao et al.
 * 2022).  Tiles above the diagonal of causal attention, or before its window, are skipped.  One
 * thread does a whole head of a sample, and in the backward pass all query heads of a group, one
 * after the other, so that the sums of dk and dv over these heads have one order. */
#include <math.h>
#include <string.h>

#include "../ops/ops.h"
#include "matmul.h"
#include "rope.h"
#include "scratch.h"
#include "vector_math.h"

enum { TILE = 64 }; /* queries and keys; a multiple of LANES */

/* One query head of one sample with its keys and values.  The strides are the distances from one
 * row to the next: of q and k, of v, and of y. */
typedef struct {
    int t, d, window; /* at most so many keys for each query */
    ptrdiff_t stride, v_stride, y_stride;
    const real *q, *k, *v;
    real scale;
    bool causal;
} Head;

typedef struct {
    int start, size;
} Span;

static Span tile_at(int start, int t) { return (Span){start, min(TILE, t - start)}; }

static Head head_at(const real *qkv, int sample, int head, int t, const Attention *a) {
    const ptrdiff_t stride = (ptrdiff_t)(a->heads + 2 * a->groups) * a->d;
    const real *q = qkv + sample * t * stride;
    const real *k = q + (a->heads + head / (a->heads / a->groups)) * a->d;
    return (Head){.t = t,
                  .d = a->d,
                  .window = a->window ? a->window : t,
                  .stride = stride,
                  .v_stride = stride,
                  .y_stride = (ptrdiff_t)a->heads * a->d,
                  .q = q + head * a->d,
                  .k = k,
                  .v = k + a->groups * a->d,
                  .scale = (real)(1 / sqrt((double)a->d)),
                  .causal = a->causal};
}

/* Returns the head with rotated copies of q and k, in scratch of the calling thread. */
static Head rotated_head(const Head *h, const Angles *angles) {
    const ptrdiff_t count = (ptrdiff_t)h->t * h->d;
    real *q = scratch(SCRATCH_ROTATED, 2 * (size_t)count), *k = q + count;
    rope_rotate_rows(q, h->q, h->stride, angles, h->t);
    rope_rotate_rows(k, h->k, h->stride, angles, h->t);
    Head rotated = *h;
    rotated.q = q;
    rotated.k = k;
    rotated.stride = h->d;
    return rotated;
}

/* Overwrites s[TILE][TILE] with q k^T, not yet scaled. */
static void scores(real *s, const Head *h, Span queries, Span keys) {
    matmul(s, TILE, h->q + queries.start * h->stride, h->stride, false,
           h->k + keys.start * h->stride, h->stride, true, NULL, queries.size, keys.size, h->d,
           false);
}

/* A query attends to keys [first_key, end_key). */
static int first_key(const Head *h, int query) {
    return query >= h->window ? query - h->window + 1 : 0;
}
static int end_key(const Head *h, int query) { return h->causal ? query + 1 : h->t; }

/* Returns which of them are in a tile: [first, end) of it, end <= first if none are. */
typedef struct {
    int first, end;
} Visible;

static Visible visible(const Head *h, int query, Span keys) {
    return (Visible){first_key(h, query) - keys.start,
                     min(end_key(h, query) - keys.start, keys.size)};
}

/* Return where the tiles begin and end whose keys any query of a tile attends to. */
static int tiles_begin(const Head *h, Span queries) {
    return first_key(h, queries.start) / TILE * TILE;
}
static int tiles_end(const Head *h, Span queries) {
    return end_key(h, queries.start + queries.size - 1);
}

static vec_bits visible_lanes(Visible keys, int j) {
    return lanes_below(keys.end - j) & ~lanes_below(keys.first - j);
}

static bool worth_threads(int n, int t, int c) { return (ptrdiff_t)n * t * c > WORTH_THREADS / 4; }

/* ---- Forward ---- */

/* Does the online softmax of one row of a tile.  Overwrites the scores with exp(scale s - max), 0
 * for keys that are not visible, and updates the row's maximum and sum.  Returns exp(old max -
 * max), by which the caller rescales what it summed under the old maximum. */
static real softmax_row(real *s, real *max, real *sum, real scale, Visible keys) {
    if (keys.end <= keys.first) { /* no maximum yet, perhaps */
        memset(s, 0, TILE * sizeof *s);
        return 1;
    }
    vec maxima = vec_all((real)-INFINITY), total = {0};
    for (int j = 0; j < TILE; j += LANES) {
        vec x =
            vec_select(visible_lanes(keys, j), vec_load(s + j) * scale, vec_all((real)-INFINITY));
        maxima = vec_max(x, maxima);
        vec_store(s + j, x);
    }
    const real old_max = *max, tile_max = vec_largest(maxima),
               new_max = tile_max > old_max ? tile_max : old_max;
    for (int j = 0; j < TILE; j += LANES) {
        vec p = vec_exp(vec_load(s + j) - new_max);
        total += p;
        vec_store(s + j, p);
    }
    const real rescale = vec_exp(vec_all(old_max - new_max))[0];
    *max = new_max;
    *sum = *sum * rescale + vec_sum(total);
    return rescale;
}

static void scale_row(real *y, real factor, int d) {
    for (int i = 0; i < d; i++) y[i] *= factor;
}

static void forward_tile(real *y, real *lse, const Head *h, Span queries) {
    real s[TILE * TILE], max[TILE], sum[TILE] = {0};
    for (int i = 0; i < TILE; i++) max[i] = (real)-INFINITY;
    const int begin = tiles_begin(h, queries);
    for (int start = begin; start < tiles_end(h, queries); start += TILE) {
        const Span keys = tile_at(start, h->t);
        scores(s, h, queries, keys);
        for (int i = 0; i < queries.size; i++) {
            const real rescale = softmax_row(s + i * TILE, max + i, sum + i, h->scale,
                                             visible(h, queries.start + i, keys));
            if (start > begin) scale_row(y + i * h->y_stride, rescale, h->d);
        }
        matmul(y, h->y_stride, s, TILE, false, h->v + start * h->v_stride, h->v_stride, false, NULL,
               queries.size, h->d, keys.size, start > begin);
    }
    for (int i = 0; i < queries.size; i++) {
        scale_row(y + i * h->y_stride, 1 / sum[i], h->d);
        lse[i] = (real)((double)max[i] + log((double)sum[i]));
    }
}

void fast_attention_forward(real *y, real *lse, const real *qkv, int n, int t, Attention a) {
    const int c = a.heads * a.d, rows = t - a.cached;
    const bool rotated = a.rope.base > 0;
    const Angles angles = rotated ? rope_angles(&a.rope, t, a.d) : (Angles){0};
#pragma omp parallel for schedule(dynamic) if (worth_threads(n, t, c))
    for (int task = 0; task < n * a.heads; task++) {
        const int sample = task / a.heads, head = task % a.heads;
        real *to = y + (ptrdiff_t)sample * rows * c + head * a.d;
        Head h = head_at(qkv, sample, head, t, &a);
        if (rotated) h = rotated_head(&h, &angles);
        for (int row = 0; row < rows; row += TILE)
            forward_tile(to + (ptrdiff_t)row * c, lse + (ptrdiff_t)task * rows + row, &h,
                         tile_at(a.cached + row, t));
    }
}

/* ---- Input gradient ---- */

/* Gradients with respect to h's q, k and v, in the same layout, accumulated. */
typedef struct {
    real *q, *k, *v;
} HeadGradient;

/* p = exp(scale s - lse) and ds = slope p (dp - dot), in place of s and dp. */
static void gradient_row(real *s, real *dp, real lse, real dot, real scale, real slope,
                         Visible keys) {
    for (int j = 0; j < TILE; j += LANES) {
        const vec_bits lanes = visible_lanes(keys, j);
        vec p = vec_select(lanes, vec_exp(vec_load(s + j) * scale - lse), (vec){0});
        vec ds = vec_select(lanes, slope * p * (vec_load(dp + j) - dot), (vec){0});
        vec_store(s + j, p);
        vec_store(dp + j, ds);
    }
}

static real dot_product(const real *a, const real *b, int d) {
    vec sum = {0};
    for (int i = 0; i < d; i += LANES)
        sum += vec_load_part(a + i, d - i, 0) * vec_load_part(b + i, d - i, 0);
    return vec_sum(sum);
}

/* Adds the gradients that come through the queries of one tile; dy, y and lse are its rows. */
static void gradient_tile(const HeadGradient *d, const real *dy, const real *y, const real *lse,
                          const Head *h, Span queries) {
    real p[TILE * TILE], dp[TILE * TILE], dot[TILE];
    const ptrdiff_t q_at = queries.start * h->stride;
    for (int i = 0; i < queries.size; i++) /* = sum_j p dp */
        dot[i] = dot_product(dy + i * h->y_stride, y + i * h->y_stride, h->d);
    for (int start = tiles_begin(h, queries); start < tiles_end(h, queries); start += TILE) {
        const Span keys = tile_at(start, h->t);
        const ptrdiff_t k_at = start * h->stride, v_at = start * h->v_stride;
        scores(p, h, queries, keys);
        matmul(dp, TILE, dy, h->y_stride, false, h->v + v_at, h->v_stride, true, NULL, queries.size,
               keys.size, h->d, false);
        for (int i = 0; i < queries.size; i++) {
            const int query = queries.start + i;
            /* The probability of a single key is 1 whatever its score, so the gradient is 0, where
             * the formula would leave rounding errors. */
            const real slope = end_key(h, query) - first_key(h, query) == 1 ? 0 : h->scale;
            gradient_row(p + i * TILE, dp + i * TILE, lse[i], dot[i], h->scale, slope,
                         visible(h, query, keys));
        }
        matmul(d->v + v_at, h->v_stride, p, TILE, true, dy, h->y_stride, false, NULL, keys.size,
               h->d, queries.size, true);
        /* dq += ds k and dk += ds^T q */
        matmul(d->q + q_at, h->stride, dp, TILE, false, h->k + k_at, h->stride, false, NULL,
               queries.size, h->d, keys.size, true);
        matmul(d->k + k_at, h->stride, dp, TILE, true, h->q + q_at, h->stride, false, NULL,
               keys.size, h->d, queries.size, true);
    }
}

static void gradient_head(const HeadGradient *d, const real *dy, const real *y, const real *lse,
                          const Head *h) {
    for (int start = 0; start < h->t; start += TILE)
        gradient_tile(d, dy + start * h->y_stride, y + start * h->y_stride, lse + start, h,
                      tile_at(start, h->t));
}

/* Does the same where q and k are rotated: their gradients are rotated back at the end. */
static void gradient_rotated_head(const HeadGradient *d, const real *dy, const real *y,
                                  const real *lse, const Head *h, const Angles *angles) {
    const size_t count = (size_t)h->t * (size_t)h->d;
    real *dq = scratch(SCRATCH_ROTATED_GRADIENT, 2 * count), *dk = dq + count;
    const Head rotated = rotated_head(h, angles);
    memset(dq, 0, 2 * count * sizeof *dq);
    gradient_head(&(HeadGradient){dq, dk, d->v}, dy, y, lse, &rotated);
    rope_unrotate_rows(d->q, h->stride, dq, angles, h->t);
    rope_unrotate_rows(d->k, h->stride, dk, angles, h->t);
}

static void clear_rows(real *x, const Head *h) {
    for (int i = 0; i < h->t; i++) memset(x + i * h->stride, 0, (size_t)h->d * sizeof *x);
}

void fast_attention_input_gradient(real *dqkv, const real *dy, const real *qkv, const real *y,
                                   const real *lse, int n, int t, Attention a, bool add) {
    const int c = a.heads * a.d, shared = a.heads / a.groups;
    const bool rotated = a.rope.base > 0;
    const Angles angles = rotated ? rope_angles(&a.rope, t, a.d) : (Angles){0};
#pragma omp parallel for schedule(dynamic) if (worth_threads(n, t, c))
    for (int task = 0; task < n * a.groups; task++) {
        const int sample = task / a.groups, first = task % a.groups * shared;
        for (int head = first; head < first + shared; head++) {
            const Head h = head_at(qkv, sample, head, t, &a);
            const HeadGradient d = {dqkv + (h.q - qkv), dqkv + (h.k - qkv), dqkv + (h.v - qkv)};
            const ptrdiff_t at = (ptrdiff_t)sample * t * c + head * a.d;
            const real *head_lse = lse + ((ptrdiff_t)sample * a.heads + head) * t;
            if (!add) clear_rows(d.q, &h);
            if (!add && head == first) { /* the query heads of a group share dk and dv */
                clear_rows(d.k, &h);
                clear_rows(d.v, &h);
            }
            if (rotated)
                gradient_rotated_head(&d, dy + at, y + at, head_lse, &h, &angles);
            else
                gradient_head(&d, dy + at, y + at, head_lse, &h);
        }
    }
}
