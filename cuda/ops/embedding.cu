/* Embeddings: a row of a table for each token, plus one for each position.
 *
 * A row's gradient is a sum over the places where its token stands.  Atomics would add these up in
 * another order each time; instead the places are sorted by token, and each row sums its own places
 * in order. */
#include "common.cuh"

/* ---- forward ----
 * Version 1 is V = 1, version 2 moves 128 bits at a time. */

template <typename T, int V>
__global__ void embedding_rows(T *y, const int *tokens, const T *token, const T *position, int t,
                               size_t packs, size_t count) {
    for (size_t i = grid_thread(); i < count; i += grid_threads()) {
        const size_t place = i / packs, pack = i % packs;
        float sum[V];
        load_floats(sum, token + ((size_t)tokens[place] * packs + pack) * V);
        if (position) {
            float more[V];
            load_floats(more, position + (place % t * packs + pack) * V);
#pragma unroll
            for (int j = 0; j < V; j++) sum[j] += more[j];
        }
        store_floats(y + i * V, sum);
    }
}

void cuda_embedding_forward(const Call *k) {
    const DeviceIO &io = *k->io;
    const size_t width = (size_t)k->o, count = (size_t)k->rows * width;
    const unsigned block = 256;
    WITH_VALUE_PACKS(k->run, T, V,
                     k->run->version != 1 && packable(width, V, io.y, io.weight, io.bias),
                     LAUNCH((embedding_rows<T, V>), grid_blocks(count / V, block), block, 0,
                            k->run->stream, (T *)io.y, io.tokens, (const T *)io.weight,
                            (const T *)io.bias, k->positions, width / V, count / V));
}

/* ---- weight gradient, version 1: each row of the table looks at every place ---- */

template <typename T>
__global__ void table_gradient_plain(float *dtoken, const T *dy, const int *tokens, int places,
                                     int c, bool add) {
    const int row = (int)blockIdx.x;
    for (int j = (int)threadIdx.x; j < c; j += (int)blockDim.x) {
        float *out = dtoken + (size_t)row * c + j;
        float sum = add ? *out : 0;
        for (int place = 0; place < places; place++)
            if (tokens[place] == row) sum += to_float(dy[(size_t)place * c + j]);
        *out = sum;
    }
}

/* ---- version 2: a stable counting sort of the places by token ----
 *
 *   count_tokens    used[row] = number of places of the row; each place gets its number of arrival
 *                   among them, in an order that changes from run to run
 *   start_rows      start[row] = where the row's places start: the sum of `used` before it
 *   list_places     lists the places by row, in order of arrival
 *   order_places    ranks a place by how many places of its row come before it, so that the order
 *                   is now the same every time
 *   sum_rows        each row sums its places in order; most rows have only a few
 *   sum_long_rows   a row with many places (" the") divides them among the warps of a block, a
 *                   contiguous part each, and adds up the parts in order */

enum { LONG = 64 }; /* a row of more places is long */

typedef struct {
    int *used, *start;     /* [vocabulary] */
    int *long_count;       /* number of long rows */
    int *long_row;         /* [places / LONG] in any order */
    int *arrival;          /* [places] */
    int *listed, *ordered; /* [places] */
} Sorted;

static size_t padded(size_t numbers) { return (numbers + 63) / 64 * 64; }

static Sorted sorted_at(void *workspace, size_t places, size_t vocabulary) {
    Sorted s;
    s.used = (int *)workspace;
    s.long_count = s.used + padded(vocabulary);
    s.start = s.long_count + padded(1);
    s.long_row = s.start + padded(vocabulary);
    s.arrival = s.long_row + padded(places / LONG);
    s.listed = s.arrival + padded(places);
    s.ordered = s.listed + padded(places);
    return s;
}

size_t cuda_embedding_workspace(const Call *k) {
    const size_t places = (size_t)k->rows, vocabulary = (size_t)k->node->vocabulary;
    return sizeof(int) *
           (2 * padded(vocabulary) + padded(1) + padded(places / LONG) + 3 * padded(places));
}

__global__ void count_tokens(Sorted s, const int *tokens, int places) {
    const int place = (int)grid_thread();
    if (place < places) s.arrival[place] = atomicAdd(&s.used[tokens[place]], 1);
}

/* A block finds the starts of 1024 rows.  It sums all of `used` before them by itself, from the
 * cache, which saves a launch. */
enum { STARTED = 1024 };
__global__ void __launch_bounds__(STARTED) start_rows(Sorted s, int vocabulary) {
    SHARED(int, scratch, [32]);
    const int thread = (int)threadIdx.x, first = (int)blockIdx.x * STARTED, row = first + thread;
    const int lane = thread % 32, warp = thread / 32;
    int before = 0;
    for (int i = thread; i < first; i += STARTED) before += s.used[i];
    before = block_sum(before, scratch);
    const int used = row < vocabulary ? s.used[row] : 0;
    int sum = used; /* of this row and those before it in the warp, then in the block */
    for (int step = 1; step < 32; step *= 2) {
        const int left = __shfl_up_sync(0xffffffffu, sum, (unsigned)step);
        if (lane >= step) sum += left;
    }
    if (lane == 31) scratch[warp] = sum;
    __syncthreads();
    for (int i = 0; i < warp; i++) before += scratch[i];
    if (row >= vocabulary) return;
    s.start[row] = before + sum - used;
    if (used > LONG) s.long_row[atomicAdd(s.long_count, 1)] = row;
}

__global__ void list_places(Sorted s, const int *tokens, int places) {
    const int place = (int)grid_thread();
    if (place < places) s.listed[s.start[tokens[place]] + s.arrival[place]] = place;
}

__global__ void order_places(Sorted s, const int *tokens, int places) {
    const int place = (int)grid_thread();
    if (place >= places) return;
    const int row = tokens[place], used = s.used[row], start = s.start[row];
    int rank = 0;
#pragma unroll 8
    for (int i = 0; i < used; i++) rank += s.listed[start + i] < place;
    s.ordered[start + rank] = place;
}

/* Adds the V numbers at dy + place * c of each of `count` places to sum[V], in order; several loads
 * are in flight at a time. */
template <typename T, int V>
static DEVICE void sum_places(float (&sum)[V], const T *dy, const int *ordered, int count,
                              size_t c) {
#pragma unroll 8
    for (int i = 0; i < count; i++) {
        float x[V];
        load_floats(x, dy + (size_t)ordered[i] * c);
#pragma unroll
        for (int j = 0; j < V; j++) sum[j] += x[j];
    }
}

/* Threads in x go through the packs of a row; threads in y have different rows. */
template <typename T, int V>
__global__ void sum_rows(float *dtoken, const T *dy, Sorted s, int vocabulary, size_t packs,
                         bool add) {
    const int row = (int)(blockIdx.x * blockDim.y + threadIdx.y);
    if (row >= vocabulary) return;
    const int used = s.used[row];
    if (used > LONG || (add && !used)) return;
    for (size_t pack = threadIdx.x; pack < packs; pack += blockDim.x) {
        float *out = dtoken + ((size_t)row * packs + pack) * V;
        float sum[V] = {};
        if (add) load_floats(sum, out);
        sum_places<T, V>(sum, dy + pack * V, s.ordered + s.start[row], used, packs * V);
        store_floats(out, sum);
    }
}

/* A block takes 32 packs of a long row, so that a long row keeps several multiprocessors busy. */
enum { PARTS = 16 };
template <typename T, int V>
__global__ void __launch_bounds__(32 * PARTS)
    sum_long_rows(float *dtoken, const T *dy, Sorted s, size_t packs, bool add) {
    SHARED(float, part, [PARTS][32][V]);
    if ((int)blockIdx.x >= *s.long_count) return;
    const int row = s.long_row[blockIdx.x], lane = (int)threadIdx.x, own = (int)threadIdx.y;
    const int used = s.used[row], length = (used + PARTS - 1) / PARTS;
    const int begin = min(own * length, used), end = min(begin + length, used);
    const size_t pack = (size_t)blockIdx.y * 32 + lane;
    float sum[V] = {};
    if (pack < packs)
        sum_places<T, V>(sum, dy + pack * V, s.ordered + s.start[row] + begin, end - begin,
                         packs * V);
#pragma unroll
    for (int j = 0; j < V; j++) part[own][lane][j] = sum[j];
    __syncthreads();
    if (own || pack >= packs) return;
    float *out = dtoken + ((size_t)row * packs + pack) * V;
    float total[V] = {};
    if (add) load_floats(total, out);
    for (int i = 0; i < PARTS; i++)
#pragma unroll
        for (int j = 0; j < V; j++) total[j] += part[i][lane][j];
    store_floats(out, total);
}

template <typename T, int V>
static void sum_all(const Run *run, float *dtoken, const T *dy, Sorted s, size_t places, size_t c,
                    int vocabulary, bool add) {
    const size_t packs = c / V;
    const unsigned across = packs >= 128 ? 128 : 32, rows = 256 / across;
    LAUNCH((sum_rows<T, V>), grid_blocks(vocabulary, rows), dim3(across, rows), 0, run->stream,
           dtoken, dy, s, vocabulary, packs, add);
    if (places <= LONG) return;
    LAUNCH((sum_long_rows<T, V>), dim3(unsigned(places / LONG), unsigned((packs + 31) / 32)),
           dim3(32, PARTS), 0, run->stream, dtoken, dy, s, packs, add);
}

static void token_gradient(const Call *k) {
    const Run *run = k->run;
    const DeviceIO &io = *k->io;
    float *dtoken = io.dweight;
    const int places = k->rows, vocabulary = k->node->vocabulary;
    const unsigned block = 256, blocks = grid_blocks(places, block);
    if (run->version == 1) {
        WITH_VALUES(run, T,
                    LAUNCH(table_gradient_plain<T>, vocabulary, 128, 0, run->stream, dtoken,
                           (const T *)io.dy, io.tokens, places, k->o, io.add_dweight));
        return;
    }
    const Sorted s = sorted_at(run->workspace, places, vocabulary);
    fill_zero(run->stream, s.used, sizeof(int) * (padded(vocabulary) + 1));
    LAUNCH(count_tokens, blocks, block, 0, run->stream, s, io.tokens, places);
    LAUNCH(start_rows, grid_blocks(vocabulary, STARTED), STARTED, 0, run->stream, s, vocabulary);
    LAUNCH(list_places, blocks, block, 0, run->stream, s, io.tokens, places);
    LAUNCH(order_places, blocks, block, 0, run->stream, s, io.tokens, places);
    WITH_VALUE_PACKS(
        run, T, V, packable(k->o, V, dtoken, io.dy),
        sum_all<T, V>(run, dtoken, (const T *)io.dy, s, places, k->o, vocabulary, io.add_dweight));
}

/* ---- position gradient ----
 * A thread sums its numbers over the samples in order.  Version 1 is V = 1. */

template <typename T, int V>
__global__ void position_sums(float *dposition, const T *dy, int n, size_t packs, bool add) {
    const size_t pack = grid_thread();
    if (pack >= packs) return;
    float sum[V] = {};
    if (add) load_floats(sum, dposition + pack * V);
#pragma unroll 4
    for (int i = 0; i < n; i++) {
        float x[V];
        load_floats(x, dy + ((size_t)i * packs + pack) * V);
#pragma unroll
        for (int j = 0; j < V; j++) sum[j] += x[j];
    }
    store_floats(dposition + pack * V, sum);
}

static void position_gradient(const Call *k) {
    const DeviceIO &io = *k->io;
    const size_t count = (size_t)k->positions * k->o;
    const unsigned block = 128;
    WITH_VALUE_PACKS(
        k->run, T, V, k->run->version != 1 && packable(count, V, io.dbias, io.dy),
        LAUNCH((position_sums<T, V>), grid_blocks(count / V, block), block, 0, k->run->stream,
               io.dbias, (const T *)io.dy, k->n, count / V, io.add_dbias));
}

void cuda_embedding_weight_gradient(const Call *k) {
    if (k->io->dweight) token_gradient(k);
    if (k->io->dbias) position_gradient(k);
}
