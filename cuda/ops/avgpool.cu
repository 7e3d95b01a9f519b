/* Global average pooling: the mean over all positions of an image, for each channel. */
#include "column_sums.cuh"

/* ---- version 1: a thread for each number of the output, or of dx ---- */

template <typename T>
static __global__ void average_plain(T *y, const T *x, size_t count, int s, int c) {
    const size_t i = grid_thread();
    if (i >= count) return;
    const size_t image = i / c, channel = i % c;
    const T *from = x + image * s * c + channel;
    float sum = 0;
    for (int k = 0; k < s; k++) sum += to_float(from[(size_t)k * c]);
    y[i] = from_float<T>(sum / (float)s);
}

template <typename T>
static __global__ void spread_plain(T *dx, const T *dy, size_t count, int s, int c, bool add) {
    const size_t i = grid_thread();
    if (i >= count) return;
    const size_t image = i / ((size_t)s * c), channel = i % c;
    put(dx + i, to_float(dy[image * c + channel]) / (float)s, add);
}

/* ---- version 2: an image is a chunk of column_sums.cuh ----
 * All threads of a block work on one image, in packs of 128 bits, and a tree adds up its positions.
 * Version 1 has only n c threads, which add up s numbers each: too few to keep the memory busy. */

template <typename T, int V>
static __global__ void __launch_bounds__(COLUMN_THREADS)
    average_packed(T *y, const T *x, Columns cut) {
    SHARED(float, scratch, [COLUMN_SCRATCH(V)]);
    const ColumnPlace p = column_place<V>(cut);
    float sum[1][V] = {};
    add_rows(sum, ColumnSum<T>{x}, cut, p);
    columns_block_sum(sum, scratch, cut, p);
    if (p.slot > 0 || p.row == p.end) return;
#pragma unroll
    for (int j = 0; j < V; j++) sum[0][j] /= (float)cut.chunk_rows;
    store_floats(y + (size_t)blockIdx.x * cut.c + p.column, sum[0]);
}

template <typename T, int V>
static __global__ void __launch_bounds__(COLUMN_THREADS)
    spread_packed(T *dx, const T *dy, Columns cut, bool add) {
    const ColumnPlace p = column_place<V>(cut);
    if (p.row == p.end) return;
    float d[V];
    load_floats(d, dy + (size_t)blockIdx.x * cut.c + p.column);
#pragma unroll
    for (int j = 0; j < V; j++) d[j] /= (float)cut.chunk_rows;
    for (int row = p.row; row < p.end; row += cut.rows)
        put(dx + (size_t)row * cut.c + p.column, d, add);
}

/* ---- launches ---- */

/* Returns the cut in which every image is a chunk. */
static Columns images_cut(int n, int s, int c, int V) {
    Columns cut = columns_cut(s, c, V, 1);
    cut.n = n * s;
    cut.chunk_rows = s;
    cut.chunks = n;
    return cut;
}

void cuda_avgpool_forward(const Call *k) {
    const DeviceIO &io = *k->io;
    const size_t count = (size_t)k->n * k->c;
    if (k->run->version == 1)
        WITH_VALUES(
            k->run, T,
            LAUNCH((average_plain<T>), grid_blocks(count, COLUMN_THREADS), COLUMN_THREADS, 0,
                   k->run->stream, (T *)io.y, (const T *)io.x, count, k->positions, k->c));
    else
        WITH_VALUE_PACKS(k->run, T, V, packable(k->c, V, io.y, io.x),
                         const Columns cut = images_cut(k->n, k->positions, k->c, V);
                         LAUNCH((average_packed<T, V>), columns_grid(cut), COLUMN_THREADS, 0,
                                k->run->stream, (T *)io.y, (const T *)io.x, cut));
}

void cuda_avgpool_input_gradient(const Call *k) {
    const DeviceIO &io = *k->io;
    if (k->run->version == 1)
        WITH_VALUES(k->run, T,
                    LAUNCH((spread_plain<T>), grid_blocks(k->count, COLUMN_THREADS), COLUMN_THREADS,
                           0, k->run->stream, (T *)io.dx, (const T *)io.dy, k->count, k->positions,
                           k->c, io.add_dx));
    else
        WITH_VALUE_PACKS(k->run, T, V, packable(k->c, V, io.dx, io.dy),
                         const Columns cut = images_cut(k->n, k->positions, k->c, V);
                         LAUNCH((spread_packed<T, V>), columns_grid(cut), COLUMN_THREADS, 0,
                                k->run->stream, (T *)io.dx, (const T *)io.dy, cut, io.add_dx));
}
