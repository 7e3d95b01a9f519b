/* The product for shapes that the device's library does not have (matmul.c): plain, and slow. */
#include "../matmul.h"
#include "common.cuh"

enum { PRODUCT_THREADS = 128 };

/* A thread has a column of C, goes down the rows of its block, and adds k products in order. */
template <typename T, typename C>
static __global__ void plain_product(C *c, const T *a, const T *b, Product p) {
    const int j = (int)(blockIdx.x * PRODUCT_THREADS + threadIdx.x);
    if (j >= p.n) return;
    const size_t a_row = p.transpose_a ? 1 : p.lda, a_column = p.transpose_a ? p.lda : 1;
    const size_t b_row = p.transpose_b ? 1 : p.ldb, b_column = p.transpose_b ? p.ldb : 1;
    for (int i = (int)blockIdx.y; i < p.m; i += (int)gridDim.y) {
        float sum = 0;
        for (int k = 0; k < p.k; k++)
            sum = fmaf(to_float(a[i * a_row + k * a_column]), to_float(b[k * b_row + j * b_column]),
                       sum);
        put(c + (size_t)i * p.ldc + j, sum, p.add);
    }
}

void cuda_plain_product(const Run *run, const Product *p) {
    const dim3 grid(grid_blocks(p->n, PRODUCT_THREADS), p->m < 65535 ? (unsigned)p->m : 65535);
    if (p->c_float)
        WITH_VALUES(run, T,
                    LAUNCH((plain_product<T, float>), grid, PRODUCT_THREADS, 0, run->stream,
                           (float *)p->c, (const T *)p->a, (const T *)p->b, *p));
    else
        WITH_VALUES(run, T,
                    LAUNCH((plain_product<T, T>), grid, PRODUCT_THREADS, 0, run->stream, (T *)p->c,
                           (const T *)p->a, (const T *)p->b, *p));
}
