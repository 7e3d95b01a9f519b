/* Batch normalisation forward, with the residual addition and relu that follow it in a ResNet.
 *
 * Batch mode reads x twice, for the statistics and to normalise, because no row can be normalised
 * before the last is read.  skip, relu and the running statistics need no pass of their own. */
#include "column_sums.cuh"

static constexpr float EPS = (float)BATCHNORM_EPS;

/* ---- statistics ---- */

typedef struct {
    float *mean, *rstd, *running_mean, *running_var;
    int n;
    double momentum;
} Statistics;

/* Stores a channel's statistics, from sum(x - pivot) and sum(x - pivot)^2 over the batch. */
static DEVICE void store_statistics(const Statistics &s, int column, double pivot, double sum,
                                    double squares) {
    const double distance = sum / s.n, mean = pivot + distance;
    squares -= distance * sum;
    if (squares < 0) squares = 0; /* rounding made it negative */
    s.mean[column] = (float)mean;
    s.rstd[column] = (float)(1 / sqrt(squares / s.n + (double)EPS));
    if (s.momentum == 0) return;
    float *m = s.running_mean + column, *v = s.running_var + column;
    const double variance = squares / (s.n > 1 ? s.n - 1 : 1);
    *m = (float)((1 - s.momentum) * (double)*m + s.momentum * mean);
    *v = (float)((1 - s.momentum) * (double)*v + s.momentum * variance);
}

/* Version 1: a block for each channel, two passes: the mean, then the distances to it. */
template <typename T>
static __global__ void __launch_bounds__(COLUMN_THREADS)
    statistics_plain(Statistics s, const T *x, int c) {
    SHARED(double, scratch, [32]);
    const T *column = x + blockIdx.x;
    float sum = 0, distance = 0, squares = 0;
    for (int row = (int)threadIdx.x; row < s.n; row += COLUMN_THREADS)
        sum += to_float(column[(size_t)row * c]);
    const float mean = (float)(block_sum((double)sum, scratch) / s.n);
    for (int row = (int)threadIdx.x; row < s.n; row += COLUMN_THREADS) {
        const float d = to_float(column[(size_t)row * c]) - mean;
        distance += d;
        squares = fmaf(d, d, squares);
    }
    const double total = block_sum((double)distance, scratch);
    const double total_squares = block_sum((double)squares, scratch);
    if (threadIdx.x == 0) store_statistics(s, (int)blockIdx.x, mean, total, total_squares);
}

/* The term of x - pivot and its square, for a thread's V columns. */
template <typename T, int width>
struct Distances : ColumnSum<T> {
    static constexpr int sums = 2;
    float pivot[width];
    template <int V>
    DEVICE void add(float (&sum)[2][V], const Pack<T, V> &row, int) const {
        float d[V];
        unpack(d, row);
#pragma unroll
        for (int j = 0; j < V; j++) {
            d[j] -= pivot[j];
            sum[0][j] += d[j];
            sum[1][j] = fmaf(d[j], d[j], sum[1][j]);
        }
    }
};

/* Version 2: one pass over x.  A block holds the first rows of its chunk in registers and takes
 * their mean as the pivot of the whole chunk, so that the sums of distances to it do not cancel.
 * (Even if these rows are outliers, they are then most of the variance.)  partial[chunk][3][c]
 * holds pivot, sum and squares. */
template <typename T, int V>
static __global__ void __launch_bounds__(COLUMN_THREADS)
    statistics_partials(float *partial, const T *x, Columns cut) {
    SHARED(float, scratch, [COLUMN_SCRATCH(2 * V)]);
    SHARED(float, shared_pivot, [32 * V]);
    const ColumnPlace p = column_place<V>(cut);
    const size_t c = (size_t)cut.c;
    Distances<T, V> term = {{x}, {}};

    Pack<T, V> first[COLUMN_LOADS];
    each_of<COLUMN_LOADS>(p.row, cut.rows, p.end, [&](int k, int row) {
        first[k] = load_pack<V>(x + (size_t)row * c + p.column);
    });
    float start[1][V] = {}, sum[2][V] = {};
    each_of<COLUMN_LOADS>(p.row, cut.rows, p.end,
                          [&](int k, int) { ColumnSum<T>{x}.add(start, first[k], p.column); });
    columns_block_sum(start, scratch, cut, p);
    const int chunk_start = (int)blockIdx.x * cut.chunk_rows;
    const int rows = min(COLUMN_LOADS * cut.rows, p.end - chunk_start);
    if (p.slot == 0)
        for (int j = 0; j < V; j++) shared_pivot[p.pack * V + j] = start[0][j] / (float)rows;
    __syncthreads();
#pragma unroll
    for (int j = 0; j < V; j++) term.pivot[j] = shared_pivot[p.pack * V + j];

    each_of<COLUMN_LOADS>(p.row, cut.rows, p.end,
                          [&](int k, int) { term.add(sum, first[k], p.column); });
    ColumnPlace rest = p;
    if (p.row < p.end) rest.row += COLUMN_LOADS * cut.rows;
    add_rows(sum, term, cut, rest);
    columns_block_sum(sum, scratch, cut, p);

    if (p.slot > 0 || p.row == p.end) return;
    float *to = partial + (size_t)blockIdx.x * 3 * c + p.column;
    store_floats(to, term.pivot);
    store_floats(to + c, sum[0]);
    store_floats(to + 2 * c, sum[1]);
}

/* Second kernel: moves every chunk's sums to the pivot of the first chunk, in double. */
struct StatisticsTotal {
    static constexpr int sums = 2;
    const float *partial;
    int c, chunk_rows;
    Statistics statistics;
    DEVICE double pivot(int chunk, int column) const {
        return (double)partial[(size_t)chunk * 3 * c + column];
    }
    DEVICE void add(double (&total)[2], int chunk, int column) const {
        const float *from = partial + ((size_t)chunk * 3 + 1) * c + column;
        const double sum = (double)from[0], squares = (double)from[c];
        const double rows = min(chunk_rows, statistics.n - chunk * chunk_rows);
        const double move = pivot(chunk, column) - pivot(0, column);
        total[0] += sum + rows * move;
        total[1] += squares + move * (2 * sum + rows * move);
    }
    DEVICE void finish(int column, const double (&total)[2]) const {
        store_statistics(statistics, column, pivot(0, column), total[0], total[1]);
    }
};

static __global__ void running_statistics(Statistics s, int c) {
    const int column = (int)grid_thread();
    if (column >= c) return;
    s.mean[column] = s.running_mean[column];
    s.rstd[column] = (float)(1 / sqrt((double)s.running_var[column] + (double)EPS));
}

/* ---- normalisation ---- */

typedef struct {
    const float *mean, *rstd;
    bool relu;
} Normalise;

static DEVICE float normalised(float x, float mean, float scale, float shift, float skip,
                               bool relu) {
    const float z = __fadd_rn(fmaf(x - mean, scale, shift), skip);
    return relu && z < 0 ? 0 : z; /* NaN stays */
}

/* Version 1: a thread computes one element at a time. */
template <typename T>
static __global__ void normalise_plain(T *y, const T *x, const T *skip, const T *g, const T *b,
                                       Normalise norm, size_t count, int c) {
    for (size_t i = grid_thread(); i < count; i += grid_threads()) {
        const int j = (int)(i % c);
        y[i] = from_float<T>(normalised(to_float(x[i]), norm.mean[j], to_float(g[j]) * norm.rstd[j],
                                        to_float(b[j]), skip ? to_float(skip[i]) : 0, norm.relu));
    }
}

/* Version 2: a thread stays in the columns of one pack, whose constants it keeps in registers, and
 * goes down the rows.  So it needs no division, and loads four packs of each input before it uses
 * the first. */
template <typename T, int V>
static __global__ void __launch_bounds__(COLUMN_THREADS)
    normalise_packed(T *__restrict__ y, const T *__restrict__ x, const T *__restrict__ skip,
                     const T *__restrict__ g, const T *__restrict__ b, Normalise norm,
                     Columns cut) {
    const ColumnPlace p = column_place<V>(cut);
    if (p.row == p.end) return;
    float mean[V], scale[V], rstd[V], shift[V];
    load_floats(mean, norm.mean + p.column);
    load_floats(rstd, norm.rstd + p.column);
    load_floats(scale, g + p.column);
    load_floats(shift, b + p.column);
#pragma unroll
    for (int j = 0; j < V; j++) scale[j] *= rstd[j];
    for (int row = p.row; row < p.end; row += COLUMN_LOADS * cut.rows) {
        Pack<T, V> in[COLUMN_LOADS], with[COLUMN_LOADS];
        const size_t at = (size_t)row * cut.c + p.column;
        const size_t step = (size_t)cut.rows * cut.c;
        each_of<COLUMN_LOADS>(row, cut.rows, p.end, [&](int k, int) {
            in[k] = load_pack<V>(x + at + (size_t)k * step);
            if (skip) with[k] = load_pack<V>(skip + at + (size_t)k * step);
        });
        each_of<COLUMN_LOADS>(row, cut.rows, p.end, [&](int k, int) {
            float value[V], added[V] = {};
            unpack(value, in[k]);
            if (skip) unpack(added, with[k]);
#pragma unroll
            for (int j = 0; j < V; j++)
                value[j] = normalised(value[j], mean[j], scale[j], shift[j], added[j], norm.relu);
            store_floats(y + at + (size_t)k * step, value);
        });
    }
}

/* ---- launches ---- */

static void statistics(const Call *k, Statistics s) {
    const Run *run = k->run;
    const void *x = k->io->x;
    float *partial = (float *)run->workspace;
    if (k->io->use_running)
        LAUNCH(running_statistics, grid_blocks(k->c, COLUMN_THREADS), COLUMN_THREADS, 0,
               run->stream, s, k->c);
    else if (run->version == 1)
        WITH_VALUES(run, T,
                    LAUNCH((statistics_plain<T>), k->c, COLUMN_THREADS, 0, run->stream, s,
                           (const T *)x, k->c));
    else
        WITH_VALUE_PACKS(
            run, T, V, packable(k->c, V, x),
            const Columns cut = columns_cut(s.n, k->c, V, COLUMN_BLOCKS);
            LAUNCH((statistics_partials<T, V>), columns_grid(cut), COLUMN_THREADS, 0, run->stream,
                   partial, (const T *)x, cut);
            launch_column_totals(run, StatisticsTotal{partial, k->c, cut.chunk_rows, s}, cut.chunks,
                                 k->c));
}

template <typename T>
static void normalise(const Call *k, Normalise norm) {
    const DeviceIO &io = *k->io;
    T *const y = (T *)io.y;
    const T *const x = (const T *)io.x, *const skip = (const T *)io.skip;
    const T *const g = (const T *)io.weight, *const b = (const T *)io.bias;
    if (k->run->version == 1)
        LAUNCH((normalise_plain<T>), grid_blocks(k->count, COLUMN_THREADS), COLUMN_THREADS, 0,
               k->run->stream, y, x, skip, g, b, norm, k->count, k->c);
    else
        WITH_PACKS(V, pack_width<T>(), packable(k->c, V, y, x, skip, g, b, norm.mean, norm.rstd),
                   const Columns cut = columns_cut(k->rows, k->c, V, ELEMENT_BLOCKS);
                   LAUNCH((normalise_packed<T, V>), columns_grid(cut), COLUMN_THREADS, 0,
                          k->run->stream, y, x, skip, g, b, norm, cut));
}

void cuda_batchnorm_forward(const Call *k) {
    const DeviceIO &io = *k->io;
    float *mean = io.aux, *rstd = io.aux + k->c;
    const double momentum = io.hold_running ? 0 : BATCHNORM_MOMENTUM;
    statistics(k, {mean, rstd, io.running_mean, io.running_var, k->rows, momentum});
    WITH_VALUES(k->run, T, normalise<T>(k, {mean, rstd, k->node->relu}));
}

size_t cuda_batchnorm_workspace(const Call *k) { return columns_workspace(k->rows, k->c, 3); }
