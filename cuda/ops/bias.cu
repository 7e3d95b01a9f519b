/* What a product's library cannot always do: the gradient of a bias, which is the sum of each
 * column (column_sums.cuh has both versions), and a bias in each row to add a product to
 * (matmul.c). */
#include "../matmul.h"
#include "column_sums.cuh"

void cuda_bias_gradient(const Run *run, float *db, const void *dy, int n, int c, int stride,
                        bool add) {
    WITH_VALUE_PACKS(
        run, T, V, packable(c, V, dy) && stride % V == 0,
        column_sums<V>(run, ColumnSum<T>{(const T *)dy}, StoreSums<1>{{db}, {add}}, n, c, stride));
}

size_t cuda_bias_gradient_workspace(int n, int c) { return columns_workspace(n, c, 1); }

/* A thread has one column, and goes down the rows of its block. */
template <typename T>
static __global__ void repeat_row(T *c, const T *row, int m, int n, int ldc) {
    const int column = (int)(blockIdx.x * COLUMN_THREADS + threadIdx.x);
    if (column >= n) return;
    const T value = row[column];
    for (int i = (int)blockIdx.y; i < m; i += (int)gridDim.y) c[(size_t)i * ldc + column] = value;
}

void cuda_repeat_row(const Run *run, void *c, const void *row, int m, int n, int ldc) {
    const dim3 grid(grid_blocks(n, COLUMN_THREADS), m < 65535 ? (unsigned)m : 65535);
    WITH_VALUES(run, T,
                LAUNCH(repeat_row<T>, grid, COLUMN_THREADS, 0, run->stream, (T *)c, (const T *)row,
                       m, n, ldc));
}
