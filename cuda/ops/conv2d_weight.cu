/* The weight gradient of conv2d: dw[o][u][v][c] = sum over n, i, j of dy[n][i][j][o] times
 * x[n][i s + u - p][j s + v - p][c].
 *
 * The versions are those of the forward pass, with products of other tiles
 * (conv2d_weight_tiles.cuh).  The sum over all pixels of the batch is long and the result small.
 * Versions 2 and 3 cut it into slices, each with partial sums of its own in the workspace, which a
 * second kernel adds in order.  Their number depends on the shape alone, so it is the same on every
 * device. */
#include "../matmul.h"
#include "conv2d_weight_tiles.cuh"

/* ---- Version 1: a thread per weight ---- */

enum { PLAIN_THREADS = 128 };

template <typename T>
static __global__ void weight_gradient_plain(float *dw, const T *dy, const T *x, Conv conv, int oh,
                                             int ow, bool add) {
    const int id = (int)(blockIdx.x * PLAIN_THREADS + threadIdx.x);
    const int c = id % conv.c, tap = id / conv.c % (conv.kernel * conv.kernel);
    const int o = id / conv.c / (conv.kernel * conv.kernel);
    if (o >= conv.o) return;
    const int u = tap / conv.kernel, v = tap % conv.kernel;
    float sum = 0;
    for (int n = 0; n < conv.n; n++)
        for (int i = 0; i < oh; i++)
            for (int j = 0; j < ow; j++) {
                const int a = i * conv.stride + u - conv.pad, b = j * conv.stride + v - conv.pad;
                if (a < 0 || a >= conv.h || b < 0 || b >= conv.w) continue;
                const size_t from = ((size_t)n * conv.h + a) * conv.w + b;
                const size_t to = ((size_t)n * oh + i) * ow + j;
                sum = fmaf(to_float(dy[to * conv.o + o]), to_float(x[from * conv.c + c]), sum);
            }
    put(dw + id, sum, add);
}

/* ---- Adding the slices ---- */

enum { SUM_COLUMNS = 32, SUM_ROWS = 16 };

/* dw[i] = the sum over slices of partial[slice][i], or dw[i] += it.  Each row of threads adds up
 * every SUM_ROWS-th slice. */
static __global__ void __launch_bounds__(SUM_COLUMNS *SUM_ROWS)
    sum_slices(float *dw, const float *__restrict__ partial, int count, int slices, bool add) {
    SHARED(float, sums, [SUM_ROWS][SUM_COLUMNS]);
    const int column = (int)threadIdx.x % SUM_COLUMNS, row = (int)threadIdx.x / SUM_COLUMNS;
    const int i = (int)blockIdx.x * SUM_COLUMNS + column;
    float sum = 0;
    if (i < count) {
#pragma unroll 8
        for (int slice = row; slice < slices; slice += SUM_ROWS)
            sum += __ldg(partial + (size_t)slice * count + i);
    }
    sums[row][column] = sum;
    __syncthreads();
    if (row || i >= count) return;
    for (int other = 1; other < SUM_ROWS; other++) sum += sums[other][column];
    put(dw + i, sum, add);
}

/* ---- Versions 2 and 3: the plan ---- */

enum { PARTIAL_BYTES = 5 << 20 }; /* of the partial sums, at most */

static int weights_of(const Conv *conv) { return conv->o * conv->kernel * conv->kernel * conv->c; }
static int outputs_of_tile(const Conv *conv) { return conv->o <= 16 ? 16 : 32; }

/* Returns the number of slices.  It depends on the shape alone, and is the same for all versions
 * and precisions. */
static int slices_of(const Conv *conv) {
    const int taps = conv->kernel * conv->kernel;
    const int tiles = ceil_div(conv->o, outputs_of_tile(conv)) * ceil_div(taps, TAPS) *
                      ceil_div(conv->c, MAX_CHANNELS);
    const int pixels = conv->n * conv2d_out(conv->h, conv) * conv2d_out(conv->w, conv);
    const double max_slices =
        (double)PARTIAL_BYTES / sizeof(float) / ((double)conv->o * conv->c * taps);
    int slices = ceil_div(ENOUGH_BLOCKS, tiles);
    if (slices > max_slices) slices = max_slices < 1 ? 1 : (int)max_slices;
    return slices > ceil_div(pixels, BP) ? ceil_div(pixels, BP) : slices;
}

template <typename Product>
static WeightWork plan_work(const Conv *conv) {
    typedef typename Product::Mode Mode;
    WeightWork work = {};
    work.c = forward_correlation(conv);
    const int taps = work.c.rows * work.c.columns, all = halo_pixels(work.c, BP);
    const int width = Product::WIDTH > Mode::GROUP ? Product::WIDTH : Mode::GROUP;
    work.channel_tiles = ceil_div(conv->c, MAX_CHANNELS);
    work.channels = ceil_div(ceil_div(conv->c, work.channel_tiles), width) * width;
    work.slices = slices_of(conv);
    work.tiles = ceil_div(work.c.pixels, BP);
    work.buffers = Mode::AHEAD && work.tiles > work.slices ? 2 : 1;
    const int row = work.channels + Product::PAD;
    work.dy_size = BP * (Product::BO + Product::PAD);
    work.buffer_size = work.dy_size + (all + 1) * row;
    const int bytes = work.buffers * work.buffer_size * (int)sizeof(typename Mode::Element);
    work.gather = all < 0 || all >= taps * BP || taps > 32 || bytes > CONV_BYTES;
    if (work.gather) work.buffer_size = work.dy_size + (BP + 1) * row;
    work.group = work.gather ? 1 : taps < TAPS ? taps : TAPS;
    work.tap_groups = ceil_div(taps, work.group);
    return work;
}

template <typename Product>
static void launch(const Call *k) {
    typedef typename Product::Mode::Value T;
    const Run *run = k->run;
    const DeviceIO &io = *k->io;
    const Conv *conv = &k->conv;
    WeightWork work = plan_work<Product>(conv);
    work.add = io.add_dweight && work.slices == 1;
    const size_t tile = (size_t)(TAPS * Product::BO * work.channels) * sizeof(float);
    size_t bytes =
        (size_t)(work.buffers * work.buffer_size) * sizeof(typename Product::Mode::Element);
    if (bytes < tile) bytes = tile;
    SHARED_LIMIT(implicit_gemm_split_k<Product>, CONV_BYTES);
    const int tiles = ceil_div(conv->o, Product::BO) * work.channel_tiles * work.tap_groups;
    float *to = work.slices > 1 ? (float *)run->workspace : io.dweight;
    LAUNCH(implicit_gemm_split_k<Product>, dim3(tiles, work.slices), Product::THREADS, bytes,
           run->stream, to, (const T *)io.dy, (const T *)io.x, work);
    if (work.slices == 1) return;
    const int count = weights_of(conv);
    LAUNCH(sum_slices, ceil_div(count, SUM_COLUMNS), SUM_COLUMNS * SUM_ROWS, 0, run->stream,
           io.dweight, to, count, work.slices, io.add_dweight);
}

template <typename Mode>
static void run_tiles(const Call *k) {
    if (outputs_of_tile(&k->conv) == 16)
        launch<WeightSums<Mode, 16>>(k);
    else
        launch<WeightSums<Mode, 32>>(k);
}

/* ---- Launchers ---- */

void cuda_conv2d_weight_gradient(const Call *k) {
    const DeviceIO &io = *k->io;
    if (k->run->version == 0 && conv2d_is_product(&k->conv))
        cuda_linear_weight_gradient(k);
    else if (k->run->version == 1)
        WITH_VALUES(k->run, T,
                    LAUNCH(weight_gradient_plain<T>,
                           (unsigned)ceil_div(weights_of(&k->conv), PLAIN_THREADS), PLAIN_THREADS,
                           0, k->run->stream, io.dweight, (const T *)io.dy, (const T *)io.x,
                           k->conv, k->node->out_shape.h, k->node->out_shape.w, io.add_dweight));
    else
        with_mode(k->run, [&](auto mode) { run_tiles<decltype(mode)>(k); });
}

size_t cuda_conv2d_workspace(const Call *k) {
    const size_t weights = (size_t)weights_of(&k->conv);
    const size_t partial = (size_t)slices_of(&k->conv) * weights * sizeof(float);
    const size_t product = conv2d_is_product(&k->conv) ? cuda_matmul_workspace() : 0;
    return partial > product ? partial : product;
}
