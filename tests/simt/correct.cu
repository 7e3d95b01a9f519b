/* Kernels as they should be: blocks, barriers, shared memory, atomics. */
#include "../../cuda/ops/kernel.cuh"
#include "kernels.h"

template <typename T, int UNROLL>
static __global__ void __launch_bounds__(1024)
    sum_rows(T *__restrict__ sum, const T *__restrict__ x, int n) {
    SHARED(T, part, [32]);
    const T *row = x + (size_t)blockIdx.x * (size_t)n;
    T s = 0;
#pragma unroll UNROLL
    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x) s += __ldg(row + i);
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x < 32) {
        s = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : T(0);
        for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
        if (threadIdx.x == 0) sum[blockIdx.x] = s;
    }
}

extern "C" void run_sum(float *sum, const float *x, int rows, int n, int threads) {
    LAUNCH((sum_rows<float, 4>), rows, threads, 0, nullptr, sum, x, n);
}

static __global__ void transpose(float *y, const float *x, int rows, int columns) {
    SHARED(float, tile, [32][33]);
    int column = (int)(blockIdx.x * 32 + threadIdx.x), row = (int)(blockIdx.y * 32 + threadIdx.y);
    for (int i = 0; i < 32; i += 8)
        if (row + i < rows && column < columns)
            tile[threadIdx.y + (unsigned)i][threadIdx.x] = x[(row + i) * columns + column];
    __syncthreads();
    row = (int)(blockIdx.y * 32 + threadIdx.x), column = (int)(blockIdx.x * 32 + threadIdx.y);
    for (int i = 0; i < 32; i += 8)
        if (row < rows && column + i < columns)
            y[(column + i) * rows + row] = tile[threadIdx.x][threadIdx.y + (unsigned)i];
}

extern "C" void run_transpose(float *y, const float *x, int rows, int columns) {
    dim3 grid((unsigned)(columns + 31) / 32, (unsigned)(rows + 31) / 32);
    LAUNCH(transpose, grid, dim3(32, 8), 0, nullptr, y, x, rows, columns);
}

/* A running sum by the algorithm of Hillis and Steele, for n up to the number of threads. */
static __global__ void scan(int *y, const int *x, int n) {
    DYNAMIC_SHARED(int, s);
    int i = (int)threadIdx.x;
    int *from = s, *to = s + blockDim.x;
    from[i] = i < n ? x[i] : 0;
    __syncthreads();
    for (int d = 1; d < (int)blockDim.x; d *= 2) {
        to[i] = from[i] + (i >= d ? from[i - d] : 0);
        __syncthreads();
        int *swap = from;
        from = to;
        to = swap;
    }
    if (i < n) y[i] = from[i];
}

extern "C" void run_scan(int *y, const int *x, int n, int threads) {
    LAUNCH(scan, 1, threads, 2 * sizeof(int) * (size_t)threads, nullptr, y, x, n);
}

/* Reverses x through a dynamic shared array that is as large as the limit. */
static __global__ void reverse(float *x, int n, size_t count) {
    DYNAMIC_SHARED(float, s);
    size_t shift = count - (size_t)n;
    int i = (int)threadIdx.x;
    s[shift + threadIdx.x] = x[i];
    __syncthreads();
    x[i] = s[shift + (size_t)(n - 1 - i)];
}

extern "C" void run_reverse(float *x, int n, size_t limit) {
    SHARED_LIMIT(reverse, limit);
    LAUNCH(reverse, 1, n, limit, nullptr, x, n, limit / sizeof(float));
}

/* Two tiles are in flight: one is summed while the next one is copied. */
static __global__ void pipeline(float *sum, const float *x, int tiles) {
    SHARED(float4, tile, [2][32]);
    float s = 0;
    copy_async16(&tile[0][threadIdx.x], x + 4 * threadIdx.x, true);
    copy_async_commit();
    for (int i = 0; i < tiles; i++) {
        /* Zeros replace the tile after the last one; nobody reads them. */
        bool more = i + 1 < tiles;
        copy_async16(&tile[(i + 1) % 2][threadIdx.x],
                     x + 128 * (more ? i + 1 : 0) + 4 * threadIdx.x, more);
        copy_async_commit();
        copy_async_wait<1>();
        __syncthreads();
        float4 v = tile[i % 2][31 - threadIdx.x];
        s += v.x + v.y + v.z + v.w;
        __syncthreads();
    }
    copy_async_wait<0>();
    __syncthreads();
    float4 zero = tile[tiles % 2][31 - threadIdx.x];
    sum[threadIdx.x] = s + zero.x + zero.y + zero.z + zero.w;
}

extern "C" void run_pipeline(float *sum, const float *x, int tiles) {
    LAUNCH(pipeline, 1, 32, 0, nullptr, sum, x, tiles);
}

static __global__ void numbers(unsigned *y) {
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned i = block * blockDim.x * blockDim.y * blockDim.z + thread;
    y[i] += i + 1;
}

extern "C" void run_numbers(unsigned *y, const unsigned grid[3], const unsigned block[3]) {
    LAUNCH(numbers, dim3(grid[0], grid[1], grid[2]), dim3(block[0], block[1], block[2]), 0, nullptr,
           y);
}

static __global__ void block_vote(int *y, int voter) {
    int any = __syncthreads_or((int)threadIdx.x == voter);
    if (threadIdx.x == blockDim.x - 1) *y = any != 0;
}

extern "C" void run_block_vote(int *y, int threads, int voter) {
    LAUNCH(block_vote, 1, threads, 0, nullptr, y, voter);
}

static __global__ void atomics(int *sum, int *histogram) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    atomicAdd(sum, i);
    atomicAdd(&histogram[i % 8], 1);
}

extern "C" void run_atomics(int *sum, int histogram[8], int blocks, int threads) {
    LAUNCH(atomics, blocks, threads, 0, nullptr, sum, histogram);
}

static __global__ void stacks(unsigned long long *addresses) {
    volatile int local = 0;
    addresses[threadIdx.x] = (unsigned long long)(size_t)&local;
}

extern "C" void run_stacks(unsigned long long *addresses, int threads) {
    LAUNCH(stacks, 1, threads, 0, nullptr, addresses);
}

static __global__ void scale(float *x, float factor, int n) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) x[i] *= factor;
}

extern "C" void run_scale(float *x, float factor, int n, void *stream) {
    LAUNCH(scale, (n + 255) / 256, 256, 0, stream, x, factor, n);
}

static __global__ void add_row(float *x, const float *row, int n) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) x[i] += row[i];
}

extern "C" void run_add_row(float *x, const float *row, int n, void *stream) {
    LAUNCH(add_row, (n + 127) / 128, 128, 0, stream, x, row, n);
}
