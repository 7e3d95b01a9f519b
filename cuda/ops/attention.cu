/* Multi-head attention, forward: y = softmax(q k^T / sqrt(d)) v over all positions or, if causal,
 * over those up to the query's (Vaswani et al. 2017, eq. 1).  The log-sum-exp of each row of scores
 * is saved.  Query heads may share keys and values (Ainslie et al. 2023); the blocks of a group are
 * neighbours in the grid, so that they find the shared keys and values in the cache.
 *
 * No row of scores is ever stored: the softmax's maximum and sum are updated along the keys, and
 * sums made under an old maximum are scaled down when a larger one appears (FlashAttention, Dao et
 * al. 2022; the order of loops is that of its second version, Dao 2023). */
#include "attention_hopper.cuh"

/* ---- Versions 2 and 3: tiles ---- */

/* What changes: a block takes ROWS queries of a head.  COLUMNS keys and values at a time are copied
 * to shared memory for all of them, so that a key is read from global memory once for many queries.
 * Both products run on tensor cores, and the next keys are loaded while these are used.  Scores and
 * sums stay in registers: the exponentials of a warp's scores already lie as the left side of the
 * second product needs them.  If causal, tiles above the diagonal are skipped, and those before the
 * window; only tiles across the ends of these and the last ones are masked, and the blocks with the
 * most tiles start first. Powers are of 2, which the hardware has, with log2(e) folded into the
 * scale. */

/* Rows of more than 64 floats are wide. */
template <Precision P, int D, bool BF16 = P == PRECISION_BF16, bool WIDE = (D > 64)>
using ForwardShape =
    TileShape<BF16 || !WIDE ? 4 : 2, 2, (BF16 ? 64 : 32) / (WIDE ? 2 : 1), BF16 && !WIDE>;

/* Computes y and lse of ROWS queries in each of n heads ceil(t / ROWS) blocks. */
template <typename W, typename T>
__global__ void __launch_bounds__(W::THREADS, W::BLOCKS)
    attention_tiles(T *y, float *lse, Heads<T> h) {
    constexpr int M = W::M, D = W::D;
    DYNAMIC_SHARED(char, shared); /* q [ROWS], then for two steps k [COLUMNS], v [COLUMNS] */
    T *const q_tile = W::first(shared), *const kv_tiles = q_tile + W::SIDE;
    const int tiles = ceil_div(h.t, W::ROWS), head = (int)blockIdx.x / tiles;
    const int first = (tiles - 1 - (int)blockIdx.x % tiles) * W::ROWS;
    const int warp = (int)threadIdx.x / 32, query = first + 16 * M * warp;
    const int unit = first + (int)threadIdx.x / W::UNIT_THREADS * W::UNIT;
    const int begin = keys_begin(h, first) / W::COLUMNS;
    const int steps = ceil_div(keys_end(h, first + W::ROWS), W::COLUMNS);
    const T *k = h.k + at_keys(h, head, h.qk_stride), *v = h.v + at_keys(h, head, h.stride);
    const auto load = [&](int step) {
        load_pair<W>(kv_tiles, step, k, h.qk_stride, v, h.stride, step * W::COLUMNS, h);
        copy_async_commit();
    };
    W::load_side(q_tile, h.q + at_head(h, head, h.qk_stride), h.qk_stride, first, h);
    load(begin);

    Softmax<M> softmax;
    float sum_v[M][D / 8][4];
    clear(sum_v);
#pragma unroll
    for (int m = 0; m < 2 * M; m++) {
        softmax.max[m / 2][m % 2] = -INFINITY;
        softmax.sum[m / 2][m % 2] = 0;
    }
    typename W::Left q;
    if (W::HELD) {
        W::wait();
        __syncthreads();
    }
    W::take(q, q_tile);
    for (int step = begin; step < steps; step++) {
        W::wait();
        __syncthreads(); /* this step's tiles are there; the last step's are free */
        if (step + 1 < steps) load(step + 1);
        const int key = step * W::COLUMNS;
        const T *k_tile = kv_tiles + step % 2 * 2 * W::TILE;
        if (no_keys<W>(h, unit, key)) continue;
        float s[M][W::N][4];
        __syncwarp();
        W::dots(s, q, k_tile);
        if (some_keys<W>(h, query, key)) hide_keys(s, h, query, key);
        online_softmax<D>(softmax, sum_v, s, h.scale * LOG2_E);
        W::sums(sum_v, s, k_tile + W::TILE);
    }
    __syncthreads(); /* results are written over the tiles */
    if (query < h.t)
        finish<T, D, M>(y, lse, (float *)q_tile + 16 * M * warp * ROW<float, D>, softmax, sum_v, h,
                        head, query);
}

template <typename W, typename T>
static void launch(const Call *k, Heads<T> h) {
    constexpr size_t bytes = W::bytes(1);
    static_assert(bytes <= W::MAX_BYTES, "shared memory");
    const auto kernel = attention_tiles<W, T>;
    SHARED_LIMIT(kernel, bytes);
    LAUNCH(kernel, k->n * h.heads * ceil_div(h.t, W::ROWS), W::THREADS, bytes, k->run->stream,
           (T *)k->io->y, k->io->aux, h);
}

template <Precision P>
static void forward(const Call *k) {
    typedef typename ValueOf<P>::type T;
    const Heads<T> h = find_heads<T>(k, attention_space(k));
    /* Of a sequence that grows there are few queries. */
    const int version = k->node->attention.cached ? 1 : attention_version(P, k->run->version, h.d);
    if (version == 1)
        attention_rows_forward(k, h);
    else if (version == 2)
        with_padded_head(h.d, [&](auto D) { launch<Warps<P, D, ForwardShape<P, D>>>(k, h); });
    else if constexpr (P == PRECISION_BF16)
        h.d == 64 ? launch<Warpgroups<64, 2, 2>>(k, h) : launch<Warpgroups<128, 3, 1>>(k, h);
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
    space.rotated = take(rows * rotated * precision_bytes(k->run->precision));
    space.bytes = bytes;
    return space;
}

size_t cuda_attention_workspace(const Call *k) { return attention_space(k).bytes; }

int cuda_attention_versions(Precision precision, int d) {
    return attention_version(precision, 3, d);
}

void cuda_attention_forward(const Call *k) {
    with_precision(k->run, [&](auto P) { forward<P>(k); });
}
