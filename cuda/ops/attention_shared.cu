/* Version 2 of attention: tiles in shared memory, without tensor cores.  It stands between a warp
 * for every query (version 1) and tiles on tensor cores (version 3), and shows what tiling alone
 * does.
 *
 * A block takes ROWS rows of a head and walks through the other side TILE rows at a time: queries
 * walk through keys and values; for the gradients of keys and values, keys walk through queries.
 * The block copies each tile to shared memory once, where version 1 reads it again for every row.
 *
 * A warp computes MINE of the block's rows.  It has two ways to share the work among its lanes:
 *   dot_products   lane i takes row i of the tile, and no sum crosses lanes
 *   add_weighted   lane i takes columns i, i + 32, ... of the result, in registers
 * Between the two, weights go through shared memory.
 *
 * Rows in shared memory lie `pitch` numbers apart, which is odd: 32 lanes that read one column of
 * 32 rows then use 32 different banks. */
#include "attention.cuh"

enum { WARPS = 8, THREADS = 32 * WARPS, MINE = 4, ROWS = WARPS * MINE, TILE = 32 };
enum { COLUMNS = TILED_HEAD / 32, MOST_PITCH = TILED_HEAD | 1 };

static __device__ __host__ __forceinline__ int pitch_of(int d) { return d | 1; }

/* Copies rows `first` to `first` + TILE - 1 of a head to shared memory, as floats; zeros from row t
 * on.  All threads of the block must call it. */
template <typename T>
static __device__ __forceinline__ void fetch_tile(float *tile, const T *head, int stride, int first,
                                                  const Heads<T> &h) {
    static_assert(ROWS == TILE, "the block's own rows are fetched as a tile too");
    const int lane = (int)threadIdx.x % 32;
    for (int row = (int)threadIdx.x / 32; row < TILE; row += WARPS) {
        const T *from = head + (size_t)(first + row) * (size_t)stride;
        for (int i = lane; i < h.d; i += 32)
            tile[row * pitch_of(h.d) + i] = first + row < h.t ? to_float(from[i]) : 0;
    }
}

/* product[r] = the dot product of row r of `own` and the lane's row of `tile`. */
static __device__ __forceinline__ void dot_products(float (&product)[MINE], const float *own,
                                                    const float *tile, int d) {
    const int pitch = pitch_of(d);
    tile += (int)threadIdx.x % 32 * pitch;
#pragma unroll
    for (int r = 0; r < MINE; r++) product[r] = 0;
#pragma unroll 4
    for (int i = 0; i < d; i++)
#pragma unroll
        for (int r = 0; r < MINE; r++) product[r] = fmaf(own[r * pitch + i], tile[i], product[r]);
}

/* sum[r] += the rows of `tile`, each times weight[r] of the lane with its number.  sum[r][c] of a
 * lane is column 32 c + lane.  `scratch` is the warp's own, and is overwritten. */
static __device__ __forceinline__ void add_weighted(float (&sum)[MINE][COLUMNS],
                                                    const float (&weight)[MINE],
                                                    float (*scratch)[TILE], const float *tile,
                                                    int d) {
    const int lane = (int)threadIdx.x % 32;
    __syncwarp(); /* the weights stored before have been read */
#pragma unroll
    for (int r = 0; r < MINE; r++) scratch[r][lane] = weight[r];
    __syncwarp();
    for (int j = 0; j < TILE; j++, tile += pitch_of(d)) {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            if (32 * c + lane >= d) continue;
            const float x = tile[32 * c + lane];
#pragma unroll
            for (int r = 0; r < MINE; r++) sum[r][c] = fmaf(scratch[r][j], x, sum[r][c]);
        }
    }
}

template <typename T>
static __device__ __forceinline__ bool looks_at(const Heads<T> &h, int query, int key) {
    return query < h.t && (key <= query || key < h.every);
}

/* ---- forward ---- */

/* grid n heads ceil(t / ROWS). */
template <typename T>
__global__ void __launch_bounds__(THREADS) attention_shared(T *y, float *lse, Heads<T> h) {
    DYNAMIC_SHARED(float, q_tile); /* then k_tile, v_tile */
    SHARED(float, scratch, [ROWS][TILE]);
    const int pitch = pitch_of(h.d), tiles = (h.t + ROWS - 1) / ROWS;
    float *const k_tile = q_tile + TILE * pitch, *const v_tile = k_tile + TILE * pitch;
    const int head = (int)blockIdx.x / tiles, first = (int)blockIdx.x % tiles * ROWS;
    const int lane = (int)threadIdx.x % 32, own = (int)threadIdx.x / 32 * MINE;
    const T *k = h.k + at_keys(h, head, h.qk_stride), *v = h.v + at_keys(h, head, h.stride);
    float most[MINE], sum[MINE], sum_v[MINE][COLUMNS] = {};
#pragma unroll
    for (int r = 0; r < MINE; r++) {
        most[r] = -INFINITY;
        sum[r] = 0;
    }
    fetch_tile(q_tile, h.q + at_head(h, head, h.qk_stride), h.qk_stride, first, h);
    for (int key = 0; key < keys_end(h, first + ROWS); key += TILE) {
        __syncthreads(); /* the last keys and values have been read */
        fetch_tile(k_tile, k, h.qk_stride, key, h);
        fetch_tile(v_tile, v, h.stride, key, h);
        __syncthreads();
        float p[MINE];
        dot_products(p, q_tile + own * pitch, k_tile, h.d);
#pragma unroll
        for (int r = 0; r < MINE; r++) { /* the softmax so far, as in version 1 */
            const bool seen = looks_at(h, first + own + r, key + lane);
            const float s = seen ? h.scale * p[r] : -INFINITY;
            const float now = fmaxf(most[r], warp_largest(s)), shrink = expf(most[r] - now);
            p[r] = seen ? expf(s - now) : 0;
            sum[r] = sum[r] * shrink + warp_sum(p[r]);
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) sum_v[r][c] *= shrink;
            most[r] = now;
        }
        add_weighted(sum_v, p, scratch + own, v_tile, h.d);
    }
    const int stride = h.heads * h.d;
#pragma unroll
    for (int r = 0; r < MINE; r++) {
        const int query = first + own + r;
        if (query >= h.t) continue;
        T *out = y + at_head(h, head, stride) + (size_t)query * (size_t)stride;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
            if (32 * c + lane < h.d) out[32 * c + lane] = from_float<T>(sum_v[r][c] / sum[r]);
        if (lane == 0) lse[(size_t)head * (size_t)h.t + (size_t)query] = most[r] + logf(sum[r]);
    }
}

/* ---- gradients ---- */

/* Writes the warp's rows of a gradient, from `row` on.  `stage` has room for MINE rows, in shared
 * memory that no other warp reads any more. */
template <typename T>
static __device__ __forceinline__ void put_sums(T *to, float *stage,
                                                const float (&sum)[MINE][COLUMNS],
                                                const Heads<T> &h, int row, const float2 *angles,
                                                bool add) {
    const int lane = (int)threadIdx.x % 32, pitch = pitch_of(h.d);
    __syncwarp();
#pragma unroll
    for (int r = 0; r < MINE; r++)
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
            if (32 * c + lane < h.d) stage[r * pitch + 32 * c + lane] = sum[r][c];
    __syncwarp();
    put_rows<T, 1, 32>(to + (size_t)row * (size_t)h.stride, h.stride, stage, pitch,
                       min(MINE, h.t - row), h.d, angles, add);
}

/* grid n heads ceil(t / ROWS).  Leaves dots for the other kernel. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    attention_query_gradient_shared(Gradients<T> g, Heads<T> h) {
    DYNAMIC_SHARED(float, q_tile); /* then dy_tile, k_tile, v_tile */
    SHARED(float, scratch, [ROWS][TILE]);
    const int pitch = pitch_of(h.d), tiles = (h.t + ROWS - 1) / ROWS, stride = h.heads * h.d;
    float *const dy_tile = q_tile + TILE * pitch;
    float *const k_tile = dy_tile + TILE * pitch, *const v_tile = k_tile + TILE * pitch;
    const int head = (int)blockIdx.x / tiles, first = (int)blockIdx.x % tiles * ROWS;
    const int lane = (int)threadIdx.x % 32, own = (int)threadIdx.x / 32 * MINE;
    const T *k = h.k + at_keys(h, head, h.qk_stride), *v = h.v + at_keys(h, head, h.stride);
    fetch_tile(q_tile, h.q + at_head(h, head, h.qk_stride), h.qk_stride, first, h);
    fetch_tile(dy_tile, g.dy + at_head(h, head, stride), stride, first, h);
    __syncthreads();
    float lse[MINE], dots[MINE], dq[MINE][COLUMNS] = {};
#pragma unroll
    for (int r = 0; r < MINE; r++) {
        const int query = first + own + r;
        const size_t at = (size_t)head * (size_t)h.t + (size_t)query;
        const T *y = g.y + at_head(h, head, stride) + (size_t)query * (size_t)stride;
        float sum = 0;
        for (int i = lane; query < h.t && i < h.d; i += 32)
            sum = fmaf(dy_tile[(own + r) * pitch + i], to_float(y[i]), sum);
        dots[r] = warp_sum(sum);
        lse[r] = query < h.t ? g.lse[at] : 0;
        if (lane == 0 && query < h.t) g.dots[at] = dots[r];
    }
    for (int key = 0; key < keys_end(h, first + ROWS); key += TILE) {
        __syncthreads();
        fetch_tile(k_tile, k, h.qk_stride, key, h);
        fetch_tile(v_tile, v, h.stride, key, h);
        __syncthreads();
        float ds[MINE], dp[MINE];
        dot_products(ds, q_tile + own * pitch, k_tile, h.d);
        dot_products(dp, dy_tile + own * pitch, v_tile, h.d);
#pragma unroll
        for (int r = 0; r < MINE; r++) {
            const float p = expf(h.scale * ds[r] - lse[r]);
            const bool seen = looks_at(h, first + own + r, key + lane);
            ds[r] = seen ? h.scale * p * (dp[r] - dots[r]) : 0;
        }
        add_weighted(dq, ds, scratch + own, k_tile, h.d);
    }
    put_sums(g.dq + at_head(h, head, h.stride), q_tile + own * pitch, dq, h, first + own,
             angles_at(h, first + own), g.add);
}

/* grid n groups ceil(t / ROWS): sums over the queries of all heads of the group. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    attention_key_gradient_shared(Gradients<T> g, Heads<T> h) {
    DYNAMIC_SHARED(float, k_tile); /* then v_tile, q_tile, dy_tile */
    SHARED(float, scratch, [ROWS][TILE]);
    const int pitch = pitch_of(h.d), tiles = (h.t + ROWS - 1) / ROWS, stride = h.heads * h.d;
    float *const v_tile = k_tile + TILE * pitch;
    float *const q_tile = v_tile + TILE * pitch, *const dy_tile = q_tile + TILE * pitch;
    const int group = (int)blockIdx.x / tiles * h.share; /* its first head */
    const int first = (int)blockIdx.x % tiles * ROWS;
    const int lane = (int)threadIdx.x % 32, own = (int)threadIdx.x / 32 * MINE;
    fetch_tile(k_tile, h.k + at_keys(h, group, h.qk_stride), h.qk_stride, first, h);
    fetch_tile(v_tile, h.v + at_keys(h, group, h.stride), h.stride, first, h);
    float dk[MINE][COLUMNS] = {}, dv[MINE][COLUMNS] = {};
    for (int head = group; head < group + h.share; head++)
        for (int query = queries_begin(h, first); query < h.t; query += TILE) {
            __syncthreads();
            fetch_tile(q_tile, h.q + at_head(h, head, h.qk_stride), h.qk_stride, query, h);
            fetch_tile(dy_tile, g.dy + at_head(h, head, stride), stride, query, h);
            __syncthreads();
            const bool inside = query + lane < h.t;
            const size_t at = (size_t)head * (size_t)h.t + (size_t)(query + lane);
            const float lse = inside ? g.lse[at] : 0, dots = inside ? g.dots[at] : 0;
            float p[MINE], ds[MINE];
            dot_products(p, k_tile + own * pitch, q_tile, h.d);
            dot_products(ds, v_tile + own * pitch, dy_tile, h.d);
#pragma unroll
            for (int r = 0; r < MINE; r++) {
                const bool seen = looks_at(h, query + lane, first + own + r);
                p[r] = seen ? expf(h.scale * p[r] - lse) : 0;
                ds[r] = seen ? h.scale * p[r] * (ds[r] - dots) : 0;
            }
            add_weighted(dv, p, scratch + own, dy_tile, h.d);
            add_weighted(dk, ds, scratch + own, q_tile, h.d);
        }
    const size_t to = at_keys(h, group, h.stride);
    put_sums(g.dk + to, k_tile + own * pitch, dk, h, first + own, angles_at(h, first + own), g.add);
    put_sums(g.dv + to, k_tile + own * pitch, dv, h, first + own, NULL, g.add);
}

/* ---- launchers ---- */

/* Returns the bytes of `tiles` tiles.  With MOST_PITCH, the largest, it is a kernel's limit. */
static size_t tile_bytes(int tiles, int pitch) {
    return (size_t)(tiles * TILE * pitch) * sizeof(float);
}

template <typename T>
void attention_shared_forward(const Run *run, T *y, float *lse, Heads<T> h, int n) {
    const int blocks = n * h.heads * ((h.t + ROWS - 1) / ROWS);
    SHARED_LIMIT(attention_shared<T>, tile_bytes(3, MOST_PITCH));
    LAUNCH(attention_shared<T>, blocks, THREADS, tile_bytes(3, pitch_of(h.d)), run->stream, y, lse,
           h);
}

template <typename T>
void attention_shared_gradient(const Run *run, Gradients<T> g, Heads<T> h, int n) {
    const int tiles = n * ((h.t + ROWS - 1) / ROWS);
    const size_t bytes = tile_bytes(4, pitch_of(h.d));
    SHARED_LIMIT(attention_query_gradient_shared<T>, tile_bytes(4, MOST_PITCH));
    LAUNCH(attention_query_gradient_shared<T>, h.heads * tiles, THREADS, bytes, run->stream, g, h);
    SHARED_LIMIT(attention_key_gradient_shared<T>, tile_bytes(4, MOST_PITCH));
    LAUNCH(attention_key_gradient_shared<T>, h.groups * tiles, THREADS, bytes, run->stream, g, h);
}

template void attention_shared_forward(const Run *, float *, float *, Heads<float>, int);
template void attention_shared_forward(const Run *, __nv_bfloat16 *, float *, Heads<__nv_bfloat16>,
                                       int);
template void attention_shared_gradient(const Run *, Gradients<float>, Heads<float>, int);
template void attention_shared_gradient(const Run *, Gradients<__nv_bfloat16>, Heads<__nv_bfloat16>,
                                        int);
