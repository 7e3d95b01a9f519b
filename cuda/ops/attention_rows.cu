/* Version 1 of attention: a warp for every query, which reads all its keys and values from global
 * memory; for their gradients, a warp for every key.  It takes the largest heads.  While a sequence
 * grows there are few queries, and several warps share the keys of each. */
#include "attention.cuh"

template <typename T>
static __device__ float dot(const T *a, const T *b, int d) {
    float sum = 0;
    for (int i = (int)threadIdx.x % 32; i < d; i += 32)
        sum = fmaf(to_float(a[i]), to_float(b[i]), sum);
    return warp_sum(sum);
}

/* What a warp has of a query's softmax: the largest score, and the sum of exponentials over it. */
struct PartOfSoftmax {
    float largest, sum;
};

/* Computes y and lse of one query, from number `cached` on, in each of n heads (t - cached) blocks
 * of W warps.  Each takes every W-th key, and they are added up in the order of the warps.  Shared
 * memory holds W rows of y; each lane uses only its own numbers of its warp's. */
template <int W, typename T>
__global__ void attention_rows(T *y, float *lse, int cached, Heads<T> h) {
    DYNAMIC_SHARED(float, sums);
    SHARED(PartOfSoftmax, part, [W]);
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, rows = h.t - cached;
    const int head = (int)blockIdx.x / rows, row = (int)blockIdx.x % rows, query = cached + row;
    const T *q = h.q + at_head(h, head, h.qk_stride) + (size_t)query * h.qk_stride;
    const int begin = keys_begin(h, query) + warp;
    const T *k = h.k + at_keys(h, head, h.qk_stride) + (size_t)begin * h.qk_stride;
    const T *v = h.v + at_keys(h, head, h.stride) + (size_t)begin * h.stride;
    float largest = -INFINITY, sum = 0, *const sum_v = sums + warp * h.d;
    for (int i = lane; i < h.d; i += 32) sum_v[i] = 0;
    for (int key = begin; key < keys_end(h, query + 1); key += W) {
        const float s = h.scale * dot(q, k, h.d);
        const float now = fmaxf(largest, s); /* fmaxf drops a NaN, but p keeps it */
        const float rescale = expf(largest - now), p = expf(s - now);
        for (int i = lane; i < h.d; i += 32) sum_v[i] = sum_v[i] * rescale + p * to_float(v[i]);
        sum = sum * rescale + p;
        largest = now;
        k += (size_t)W * h.qk_stride;
        v += (size_t)W * h.stride;
    }
    if (lane == 0) part[warp] = {largest, sum};
    __syncthreads();
    float total = 0;
    for (int w = 0; w < W; w++) largest = fmaxf(largest, part[w].largest);
    for (int w = 0; w < W; w++) total += part[w].sum * expf(part[w].largest - largest);
    T *out = y + (((size_t)(head / h.heads) * rows + row) * h.heads + head % h.heads) * h.d;
    for (int i = (int)threadIdx.x; i < h.d; i += 32 * W) {
        float of_all = 0;
        for (int w = 0; w < W; w++) of_all += sums[w * h.d + i] * expf(part[w].largest - largest);
        out[i] = from_float<T>(of_all / total);
    }
    if (threadIdx.x == 0) lse[(size_t)head * rows + row] = largest + logf(total);
}

/* ---- gradients ---- */

template <typename T>
static __device__ void add_row(float *sum, float by, const T *row, int d) {
    for (int i = (int)threadIdx.x; i < d; i += 32) sum[i] = fmaf(by, to_float(row[i]), sum[i]);
}

/* Computes dq and dots of one query in each of n heads t blocks of one warp; shared: dq[d]. */
template <typename T>
__global__ void attention_query_gradient(Gradients<T> g, Heads<T> h) {
    DYNAMIC_SHARED(float, dq);
    const int query = (int)blockIdx.x % h.t, c = h.heads * h.d;
    const int head = (int)blockIdx.x / h.t;
    const size_t at = (size_t)head * h.t + query;
    const size_t at_y = at_head(h, head, c) + (size_t)query * c;
    const T *q = h.q + at_head(h, head, h.qk_stride) + (size_t)query * h.qk_stride;
    const int first = keys_begin(h, query);
    const T *k = h.k + at_keys(h, head, h.qk_stride) + (size_t)first * h.qk_stride;
    const T *v = h.v + at_keys(h, head, h.stride) + (size_t)first * h.stride;
    const float dots = dot(g.dy + at_y, g.y + at_y, h.d);
    if (threadIdx.x == 0) g.dots[at] = dots;
    for (int i = (int)threadIdx.x; i < h.d; i += 32) dq[i] = 0;
    for (int key = first; key < keys_end(h, query + 1); key++, k += h.qk_stride, v += h.stride) {
        const float p = expf(h.scale * dot(q, k, h.d) - g.lse[at]);
        add_row(dq, h.scale * p * (dot(g.dy + at_y, v, h.d) - dots), k, h.d);
    }
    __syncwarp();
    const size_t out = at_head(h, head, h.stride) + (size_t)query * h.stride;
    put_rows<T, 1, 32>(g.dq + out, 0, dq, 0, 1, h.d, angles_at(h, query), g.add);
}

/* Computes dk and dv of one key in each of n groups t blocks of one warp; shared: dk[d], dv[d]. */
template <typename T>
__global__ void attention_key_gradient(Gradients<T> g, Heads<T> h) {
    DYNAMIC_SHARED(float, dk);
    float *const dv = dk + h.d;
    const int key = (int)blockIdx.x % h.t, c = h.heads * h.d;
    const int first = (int)blockIdx.x / h.t * h.share; /* head of the group */
    const T *k = h.k + at_keys(h, first, h.qk_stride) + (size_t)key * h.qk_stride;
    const T *v = h.v + at_keys(h, first, h.stride) + (size_t)key * h.stride;
    for (int i = (int)threadIdx.x; i < 2 * h.d; i += 32) dk[i] = 0;
    __syncwarp();
    for (int head = first; head < first + h.share; head++)
        for (int query = queries_begin(h, key); query < queries_end(h, key + 1); query++) {
            const size_t at = (size_t)head * h.t + query;
            const T *dy = g.dy + at_head(h, head, c) + (size_t)query * c;
            const T *q = h.q + at_head(h, head, h.qk_stride) + (size_t)query * h.qk_stride;
            const float p = expf(h.scale * dot(q, k, h.d) - g.lse[at]);
            add_row(dv, p, dy, h.d);
            add_row(dk, h.scale * p * (dot(dy, v, h.d) - g.dots[at]), q, h.d);
        }
    __syncwarp();
    const size_t out = at_keys(h, first, h.stride) + (size_t)key * h.stride;
    put_rows<T, 1, 32>(g.dk + out, 0, dk, 0, 1, h.d, angles_at(h, key), g.add);
    put_rows<T, 1, 32>(g.dv + out, 0, dv, 0, 1, h.d, NULL, g.add);
}

/* ---- launchers ---- */

template <int W, typename T>
static void launch_rows(const Call *k, Heads<T> h) {
    const int cached = k->node->attention.cached;
    const size_t bytes = (size_t)(W * h.d) * sizeof(float);
    SHARED_LIMIT((attention_rows<W, T>), DYNAMIC_MAX);
    LAUNCH((attention_rows<W, T>), k->n * h.heads * (h.t - cached), 32 * W, bytes, k->run->stream,
           (T *)k->io->y, k->io->aux, cached, h);
}

template <typename T>
void attention_rows_forward(const Call *k, Heads<T> h) {
    enum { WARPS = 8, LARGE_HEAD = 1024 }; /* of which so many rows fit into shared memory */
    if (k->node->attention.cached && h.d <= LARGE_HEAD)
        launch_rows<WARPS>(k, h);
    else
        launch_rows<1>(k, h);
}

template <typename T>
void attention_rows_gradient(const Call *k, Gradients<T> g, Heads<T> h) {
    const size_t bytes = (size_t)h.d * sizeof(float);
    SHARED_LIMIT(attention_query_gradient<T>, DYNAMIC_MAX);
    SHARED_LIMIT(attention_key_gradient<T>, DYNAMIC_MAX);
    LAUNCH(attention_query_gradient<T>, k->rows * h.heads, 32, bytes, k->run->stream, g, h);
    LAUNCH(attention_key_gradient<T>, k->rows * h.groups, 32, 2 * bytes, k->run->stream, g, h);
}

template void attention_rows_forward(const Call *, Heads<float>);
template void attention_rows_forward(const Call *, Heads<__nv_bfloat16>);
template void attention_rows_gradient(const Call *, Gradients<float>, Heads<float>);
template void attention_rows_gradient(const Call *, Gradients<__nv_bfloat16>, Heads<__nv_bfloat16>);
