/* Root mean square norms of queries and keys before attention (ref/ops/qknorm.c): of each head, or
 * of all heads of a position.  A position of x and y holds the vectors that are normalised, then
 * the values, which are copied as vectors without a scale.  A thread block takes a vector or, of
 * short ones, a warp each.
 *
 *   forward    y = x r g, r = 1 / sqrt(mean(x^2) + eps)
 *   gradient   dx = r (dy g - x r^2 mean(dy g x))
 *   scale      dg = sum over positions and vectors of dy x r */
#include "column_sums.cuh"
#include "norm.cuh"

/* All vectors of n positions of `width` numbers; r[n][q + k] is what the forward pass saves. */
struct QkRows {
    int n, width;
    QkVectors of;
    float *r;
};

/* One of them: where it begins, its length, its scale, where its r is; g NULL: values. */
template <typename T>
struct QkRow {
    size_t at;
    int size;
    const T *g;
    float *r;
};

/* Returns vector `index` of all; a position has q, then k, then again k vectors of values. */
template <typename T>
static DEVICE QkRow<T> qk_row(const QkRows &rows, int index, const T *gq, const T *gk) {
    const QkVectors &v = rows.of;
    const int all = v.q + 2 * v.k, row = index / all, i = index % all;
    const bool query = i < v.q, value = i >= v.q + v.k;
    const int at = query ? i * v.q_size : v.q * v.q_size + (i - v.q) * v.k_size;
    QkRow<T> result;
    result.at = (size_t)row * rows.width + at;
    result.size = query ? v.q_size : v.k_size;
    result.g = value ? NULL : query ? gq : gk;
    result.r = value ? NULL : rows.r + (size_t)row * (v.q + v.k) + i;
    return result;
}

/* Returns the vector of these threads, and in *there whether it exists; all of a warp or none. */
template <int threads>
static DEVICE int qk_index(const QkRows &rows, bool *there) {
    const int index = (int)blockIdx.x * norm_rows(threads) + (int)threadIdx.x / threads;
    *there = index < rows.n * (rows.of.q + 2 * rows.of.k);
    return index;
}

template <int threads, typename T, int V>
__global__ void qknorm_rows(T *y, const T *x, const T *gq, const T *gk, QkRows rows, float eps) {
    SHARED(float, scratch, [32]);
    bool there;
    const int index = qk_index<threads>(rows, &there), lane = (int)threadIdx.x % threads;
    if (!there) return;
    const QkRow<T> row = qk_row(rows, index, gq, gk);
    float squares = 0, value[V], scale[V];
    for (int i = lane * V; row.g && i < row.size; i += threads * V) {
        load_floats(value, x + row.at + i);
#pragma unroll
        for (int j = 0; j < V; j++) squares = fmaf(value[j], value[j], squares);
    }
    const float r =
        row.g ? 1.0f / sqrtf(row_sum<threads>(squares, scratch) / (float)row.size + eps) : 1;
    for (int i = lane * V; i < row.size; i += threads * V) {
        load_floats(value, x + row.at + i);
        if (row.g) load_floats(scale, row.g + i);
#pragma unroll
        for (int j = 0; j < V; j++) value[j] = row.g ? value[j] * r * scale[j] : value[j];
        store_floats(y + row.at + i, value);
    }
    if (row.r && lane == 0) *row.r = r;
}

template <int threads, typename T, int V>
__global__ void qknorm_gradient_rows(T *dx, const T *dy, const T *x, const T *gq, const T *gk,
                                     QkRows rows, bool add) {
    SHARED(float, scratch, [32]);
    bool there;
    const int index = qk_index<threads>(rows, &there), lane = (int)threadIdx.x % threads;
    if (!there) return;
    const QkRow<T> row = qk_row(rows, index, gq, gk);
    float product = 0, value[V], scale[V], d[V];
    for (int i = lane * V; row.g && i < row.size; i += threads * V) {
        load_floats(value, x + row.at + i);
        load_floats(d, dy + row.at + i);
        load_floats(scale, row.g + i);
#pragma unroll
        for (int j = 0; j < V; j++) product = fmaf(d[j] * scale[j], value[j], product);
    }
    const float r = row.g ? *row.r : 1;
    const float slope = row.g ? row_sum<threads>(product, scratch) / (float)row.size * r * r : 0;
    for (int i = lane * V; i < row.size; i += threads * V) {
        load_floats(d, dy + row.at + i);
        if (row.g) {
            load_floats(value, x + row.at + i);
            load_floats(scale, row.g + i);
        }
#pragma unroll
        for (int j = 0; j < V; j++)
            if (row.g) d[j] = r * fmaf(-value[j], slope, d[j] * scale[j]);
        put(dx + row.at + i, d, add);
    }
}

/* The term of the sums for a scale: rows are vectors [first, first + count) of all positions, and
 * columns their numbers. */
template <typename T>
struct QkScaleTerm {
    static constexpr int sums = 1;
    const T *dy, *x;
    QkRows rows;
    int first, count, size;
    template <int V>
    struct Row {
        Pack<T, V> dy, x;
        float r;
    };
    template <int V>
    DEVICE Row<V> load(size_t at) const {
        const int row = (int)(at / size), position = row / count, i = first + row % count;
        const size_t from = (size_t)position * rows.width +
                            (first ? rows.of.q * rows.of.q_size : 0) + (size_t)(i - first) * size +
                            at % size;
        Row<V> loaded;
        loaded.dy = load_pack<V>(dy + from);
        loaded.x = load_pack<V>(x + from);
        loaded.r = rows.r[(size_t)position * (rows.of.q + rows.of.k) + i];
        return loaded;
    }
    template <int V>
    DEVICE void add(float (&sum)[1][V], const Row<V> &row, int) const {
        float d[V], value[V];
        unpack(d, row.dy);
        unpack(value, row.x);
#pragma unroll
        for (int j = 0; j < V; j++) sum[0][j] = fmaf(d[j], value[j] * row.r, sum[0][j]);
    }
};

/* ---- launches ---- */

static QkRows rows_of(const Call *k) {
    return {k->rows, k->c, qk_vectors(k->node->attention, k->node->whole), k->io->aux};
}

/* Calls launch(threads) with 32 for short vectors, and for version 1. */
template <typename Launch>
static void with_threads(const Call *k, const QkRows &rows, const Launch &launch) {
    if (k->run->version == 1 || rows.of.q_size <= 512)
        launch(Constant<32>());
    else
        launch(Constant<(int)NORM_THREADS>());
}

/* Version 1 reads number by number. */
static bool packs(const Call *k, const QkRows &rows, int V, const void *y, const void *z) {
    return k->run->version != 1 && rows.of.q_size % V == 0 && rows.of.k_size % V == 0 &&
           packable((size_t)rows.width, V, k->io->x, k->io->weight, k->io->bias, y, z);
}

void cuda_qknorm_forward(const Call *k) {
    const QkRows rows = rows_of(k);
    const DeviceIO &io = *k->io;
    const size_t count = (size_t)rows.n * (rows.of.q + 2 * rows.of.k);
    with_threads(k, rows, [&](auto threads) {
        WITH_VALUE_PACKS(
            k->run, T, V, packs(k, rows, V, io.y, NULL),
            LAUNCH((qknorm_rows<threads, T, V>), grid_blocks(count, norm_rows(threads)),
                   threads * norm_rows(threads), 0, k->run->stream, (T *)io.y, (const T *)io.x,
                   (const T *)io.weight, (const T *)io.bias, rows, (float)k->node->eps));
    });
}

void cuda_qknorm_input_gradient(const Call *k) {
    const QkRows rows = rows_of(k);
    const DeviceIO &io = *k->io;
    const size_t count = (size_t)rows.n * (rows.of.q + 2 * rows.of.k);
    with_threads(k, rows, [&](auto threads) {
        WITH_VALUE_PACKS(
            k->run, T, V, packs(k, rows, V, io.dx, io.dy),
            LAUNCH((qknorm_gradient_rows<threads, T, V>), grid_blocks(count, norm_rows(threads)),
                   threads * norm_rows(threads), 0, k->run->stream, (T *)io.dx, (const T *)io.dy,
                   (const T *)io.x, (const T *)io.weight, (const T *)io.bias, rows, io.add_dx));
    });
}

/* The sums of `count` vectors of each position, from `first` on. */
static void scale_gradient(const Call *k, float *dg, int first, int count, int size, bool add) {
    const QkRows rows = rows_of(k);
    const DeviceIO &io = *k->io;
    WITH_VALUE_PACKS(
        k->run, T, V, packs(k, rows, V, io.dy, NULL),
        (column_sums<V>(k->run,
                        QkScaleTerm<T>{(const T *)io.dy, (const T *)io.x, rows, first, count, size},
                        StoreSums<1>{{dg}, {add}}, rows.n * count, size, size)));
}

void cuda_qknorm_weight_gradient(const Call *k) {
    const QkVectors v = qk_vectors(k->node->attention, k->node->whole);
    const DeviceIO &io = *k->io;
    if (io.dweight) scale_gradient(k, io.dweight, 0, v.q, v.q_size, io.add_dweight);
    if (io.dbias) scale_gradient(k, io.dbias, v.q, v.k, v.k_size, io.add_dbias);
}

size_t cuda_qknorm_workspace(const Call *k) {
    const QkVectors v = qk_vectors(k->node->attention, k->node->whole);
    const size_t q = columns_workspace(k->rows * v.q, v.q_size, 1);
    const size_t keys = columns_workspace(k->rows * v.k, v.k_size, 1);
    return q > keys ? q : keys;
}
