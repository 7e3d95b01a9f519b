/* Sums over the rows of an array [n][c], one for each column: bias gradients, the statistics and
 * sums of batch norm, the gradients of norms' scales, average pooling.
 *
 * Rows are cut into chunks and columns into tiles of packs; a block walks one chunk of one tile,
 * its threads in rows of packs, so that a warp reads neighbouring bytes however few columns there
 * are.  The sums of the chunks go through the workspace, and a second kernel adds them up.  All
 * cuts depend on the shape alone, and every sum is taken in one order. */
#pragma once

#include "common.cuh"

enum {
    COLUMN_THREADS = 256,
    COLUMN_BLOCKS = 528,                /* wanted: four to each of 132 multiprocessors */
    ELEMENT_BLOCKS = 2 * COLUMN_BLOCKS, /* of kernels that go through an array and sum nothing */
    COLUMN_LOADS = 4, /* rows a thread reads of a chunk, at least, unless n is smaller */
    COLUMN_LANES = 32 /* chunks the second kernel reads at once, and its columns per block */
};

/* ---- the cuts ---- */

typedef struct {
    int n, c, stride; /* numbers from row to row */
    int packs, tiles; /* packs of V columns in a tile; tiles are blockIdx.y */
    int rows;         /* that a block reads at once: thread t has row t / packs, pack t % packs */
    int chunk_rows, chunks; /* chunks are blockIdx.x */
} Columns;

/* Cuts an array for about `blocks` thread blocks in all. */
static inline Columns columns_cut(int n, int c, int V, int blocks) {
    Columns cut = {};
    cut.n = n;
    cut.c = cut.stride = c;
    cut.tiles = ceil_div(c / V, 32);
    cut.packs = ceil_div(c / V, cut.tiles);
    cut.rows = COLUMN_THREADS / cut.packs;
    const int max_chunks = blocks > cut.tiles ? blocks / cut.tiles : 1;
    const int min_rows = n < COLUMN_LOADS * cut.rows ? n : COLUMN_LOADS * cut.rows;
    const int even = n / max_chunks + (n % max_chunks != 0);
    cut.chunk_rows = even < min_rows ? min_rows : even;
    if (cut.chunk_rows < n) cut.chunk_rows = round_up(cut.chunk_rows, COLUMN_LOADS * cut.rows);
    cut.chunks = n / cut.chunk_rows + (n % cut.chunk_rows != 0);
    return cut;
}

static inline dim3 columns_grid(Columns cut) { return dim3(cut.chunks, cut.tiles); }

/* Returns the bytes of `sums` numbers for each chunk and column, enough for any value type and
 * version. */
static inline size_t columns_workspace(int n, int c, int sums) {
    size_t max_chunks = 0;
    for (int V = 1; V <= 8; V++) {
        if (c % V) continue;
        const size_t chunks = (size_t)columns_cut(n, c, V, COLUMN_BLOCKS).chunks;
        if (chunks > max_chunks) max_chunks = chunks;
    }
    return max_chunks * c * sums * sizeof(float);
}

/* ---- a block ---- */

typedef struct {
    int pack, slot; /* of the tile; of the rows loaded at once */
    int column;     /* first of V */
    int row, end;   /* first row of the thread, and one after the last of the chunk; */
                    /* row == end if the thread has no columns */
} ColumnPlace;

template <int V>
static DEVICE ColumnPlace column_place(const Columns &cut) {
    ColumnPlace p;
    p.pack = (int)threadIdx.x % cut.packs;
    p.slot = (int)threadIdx.x / cut.packs;
    p.column = ((int)blockIdx.y * cut.packs + p.pack) * V;
    const int first = (int)blockIdx.x * cut.chunk_rows;
    p.end = cut.n - first < cut.chunk_rows ? cut.n : first + cut.chunk_rows;
    p.row =
        p.slot < cut.rows && p.column < cut.c && p.slot < p.end - first ? first + p.slot : p.end;
    return p;
}

/* Adds up the block's rows as a tree: slot 0 gets the sums of Q * V numbers.  All threads must call
 * it. `scratch` holds COLUMN_SCRATCH(Q * V) floats of shared memory, and may be used again after a
 * barrier. */
#define COLUMN_SCRATCH(numbers) ((numbers)*COLUMN_THREADS / 2)
template <int Q, int V>
static DEVICE void columns_block_sum(float (&sum)[Q][V], float *scratch, const Columns &cut,
                                     const ColumnPlace &p) {
    for (int rows = cut.rows; rows > 1;) {
        const int half = (rows + 1) / 2;
        if (p.slot >= half && p.slot < rows) {
            float *to = scratch + (p.slot - half) * cut.packs + p.pack;
#pragma unroll
            for (int i = 0; i < Q * V; i++) to[i * (COLUMN_THREADS / 2)] = sum[i / V][i % V];
        }
        __syncthreads();
        if (p.slot + half < rows) {
            const float *from = scratch + p.slot * cut.packs + p.pack;
#pragma unroll
            for (int i = 0; i < Q * V; i++) sum[i / V][i % V] += from[i * (COLUMN_THREADS / 2)];
        }
        __syncthreads();
        rows = half;
    }
}

/* ---- first kernel ----
 * A Term has `sums`, how many quantities Q it sums; Row<V>, what it needs to know of V elements of
 * a row; load<V>(at), which fetches that for index `at`; and add(float (&sum)[Q][V], row,
 * column), which adds theirs.  partial[chunk][Q][c] is overwritten. */

/* The term of a plain sum. */
template <typename T>
struct ColumnSum {
    static constexpr int sums = 1;
    const T *x;
    template <int V>
    using Row = Pack<T, V>;
    template <int V>
    DEVICE Row<V> load(size_t at) const {
        return load_pack<V>(x + at);
    }
    template <int V>
    DEVICE void add(float (&sum)[1][V], const Pack<T, V> &row, int) const {
        float value[V];
        unpack(value, row);
#pragma unroll
        for (int j = 0; j < V; j++) sum[0][j] += value[j];
    }
};

template <typename Term, int V>
static DEVICE void add_rows(float (&sum)[Term::sums][V], const Term &term, const Columns &cut,
                            const ColumnPlace &p) {
    const size_t stride = (size_t)cut.stride, column = (size_t)p.column;
    int row = p.row;
    /* All loads of a round come before the first use.  A loop that tests before each row whether it
     * exists would wait for each load. */
    for (; row < p.end - (COLUMN_LOADS - 1) * cut.rows; row += COLUMN_LOADS * cut.rows) {
        typename Term::template Row<V> loaded[COLUMN_LOADS];
#pragma unroll
        for (int k = 0; k < COLUMN_LOADS; k++)
            loaded[k] = term.template load<V>((size_t)(row + k * cut.rows) * stride + column);
#pragma unroll
        for (int k = 0; k < COLUMN_LOADS; k++) term.add(sum, loaded[k], p.column);
    }
    for (; row < p.end; row += cut.rows)
        term.add(sum, term.template load<V>((size_t)row * stride + column), p.column);
}

template <typename Term, int V>
static __global__ void __launch_bounds__(COLUMN_THREADS)
    column_partials(float *partial, Term term, Columns cut) {
    SHARED(float, scratch, [COLUMN_SCRATCH(Term::sums * V)]);
    const ColumnPlace p = column_place<V>(cut);
    float sum[Term::sums][V] = {};
    add_rows(sum, term, cut, p);
    columns_block_sum(sum, scratch, cut, p);
    if (p.slot > 0 || p.row == p.end) return;
    float *to = partial + (size_t)blockIdx.x * Term::sums * cut.c + p.column;
#pragma unroll
    for (int q = 0; q < Term::sums; q++) store_floats(to + (size_t)q * cut.c, sum[q]);
}

/* ---- second kernel ----
 * Total has `sums`, add(double (&sum)[Q], chunk, column), and finish(column, const double (&)[Q]),
 * which stores a column's result.  Block (32, 32): a lane of y for every 32nd chunk. */
template <typename Total>
static __global__ void __launch_bounds__(1024) column_totals(Total total, int chunks, int c) {
    constexpr int Q = Total::sums;
    SHARED(double, scratch, [Q][COLUMN_LANES][COLUMN_LANES + 1]);
    const int x = (int)threadIdx.x, y = (int)threadIdx.y, first = (int)blockIdx.x * COLUMN_LANES;
    double sum[Q] = {};
    if (first + x < c)
        for (int chunk = y; chunk < chunks; chunk += COLUMN_LANES) total.add(sum, chunk, first + x);
    for (int q = 0; q < Q; q++) scratch[q][y][x] = sum[q];
    __syncthreads();
    for (int q = 0; q < Q; q++) sum[q] = warp_sum(scratch[q][x][y]); /* warp y: column y */
    if (x == 0 && first + y < c) total.finish(first + y, sum);
}

template <typename Total>
static void launch_column_totals(const Run *run, Total total, int chunks, int c) {
    LAUNCH((column_totals<Total>), grid_blocks(c, COLUMN_LANES), dim3(COLUMN_LANES, COLUMN_LANES),
           0, run->stream, total, chunks, c);
}

/* Adds partials [chunk][Q][c]; Finish has finish(column, sums). */
template <int Q, typename Finish>
struct PartialSums {
    static constexpr int sums = Q;
    const float *partial;
    int c;
    Finish result;
    DEVICE void add(double (&sum)[Q], int chunk, int column) const {
        const float *from = partial + (size_t)chunk * Q * c + column;
        for (int q = 0; q < Q; q++) sum[q] += (double)from[(size_t)q * c];
    }
    DEVICE void finish(int column, const double (&sum)[Q]) const { result.finish(column, sum); }
};

/* A Finish that stores each of Q <= 2 sums, or adds it to what is there. */
template <int Q>
struct StoreSums {
    float *to[2]; /* NULL: not wanted */
    bool add[2];
    DEVICE void finish(int column, const double (&sum)[Q]) const {
        for (int q = 0; q < Q; q++)
            if (to[q]) to[q][column] = (float)sum[q] + (add[q] ? to[q][column] : 0.0f);
    }
};

/* ---- both, and what they are measured against ---- */

/* Version 1: a block for each column.  Plain, but a warp's reads lie c elements apart. */
template <typename Term, typename Finish>
static __global__ void __launch_bounds__(COLUMN_THREADS)
    column_sums_plain(Term term, Finish result, int n, int stride) {
    constexpr int Q = Term::sums;
    SHARED(double, scratch, [32]);
    const int column = (int)blockIdx.x;
    float sum[Q][1] = {};
    for (int row = (int)threadIdx.x; row < n; row += COLUMN_THREADS)
        term.add(sum, term.template load<1>((size_t)row * stride + column), column);
    double total[Q];
    for (int q = 0; q < Q; q++) total[q] = block_sum((double)sum[q][0], scratch);
    if (threadIdx.x == 0) result.finish(column, total);
}

/* Calls finish(column, sums) for every column, with the sums of the term over all n rows, which
 * start `stride` numbers apart.  V is the pack width of the arrays, 1 if not packable. */
template <int V, typename Term, typename Finish>
static void column_sums(const Run *run, Term term, Finish result, int n, int c, int stride) {
    if (run->version == 1) {
        LAUNCH((column_sums_plain<Term, Finish>), c, COLUMN_THREADS, 0, run->stream, term, result,
               n, stride);
        return;
    }
    Columns cut = columns_cut(n, c, V, COLUMN_BLOCKS);
    cut.stride = stride;
    float *partial = (float *)run->workspace;
    LAUNCH((column_partials<Term, V>), columns_grid(cut), COLUMN_THREADS, 0, run->stream, partial,
           term, cut);
    launch_column_totals(run, PartialSums<Term::sums, Finish>{partial, c, result}, cut.chunks, c);
}
