/* Fills an array with copies of one row: a product with a bias starts from that (matmul.c). */
#include "../common.cuh"
#include "../matmul.h"

enum { THREADS = 256 };

/* A thread has one column, and goes down the rows of its block. */
template <typename T>
static __global__ void repeat_row(T *c, const T *row, int m, int n, int ldc) {
    const int column = (int)(blockIdx.x * THREADS + threadIdx.x);
    if (column >= n) return;
    const T value = row[column];
    for (int i = (int)blockIdx.y; i < m; i += (int)gridDim.y) c[(size_t)i * ldc + column] = value;
}

void cuda_repeat_row(const Run *run, void *c, const void *row, int m, int n, int ldc) {
    const dim3 grid(grid_blocks(n, THREADS), m < 65535 ? (unsigned)m : 65535);
    WITH_VALUES(
        run, T,
        LAUNCH(repeat_row<T>, grid, THREADS, 0, run->stream, (T *)c, (const T *)row, m, n, ldc));
}
