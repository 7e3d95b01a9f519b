/* Matrix products on the device, with what a neural network does right after them: cuBLASLt on a
 * GPU (gpu/matmul.c), plain loops under SIMT (simt/matmul.c). */
#ifndef CUDA_MATMUL_H
#define CUDA_MATMUL_H

#include "kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    EPILOGUE_NONE,
    EPILOGUE_GELU,         /* c = gelu(product + bias); saved, unless NULL, gets product + bias */
    EPILOGUE_GELU_GRADIENT /* c = product * gelu'(saved) */
} Epilogue;

/* C[m][n] = op(A)[m][k] op(B)[k][n] row-major, as matmul in ref/ops/ops.h: row strides ldc, lda,
 * ldb; transpose_a: A is stored [k][m]; transpose_b: B is stored [n][k].  A and B are of the run's
 * value type, C too unless c_float; sums are in float (or better).  Overwrites C, or with `add`
 * accumulates into it (EPILOGUE_NONE only).  C must not alias A, B or saved. */
typedef struct {
    void *c;
    const void *a, *b;
    int ldc, lda, ldb;
    bool transpose_a, transpose_b;
    int m, n, k;
    bool add;
    bool c_float;     /* C is float whatever the precision: parameter gradients */
    const void *bias; /* [n] of the value type, added to each row; NULL: none */
    Epilogue epilogue;
    void *saved; /* [m][n] of the value type, row stride ldc */
    /* Weight gradients, where transpose_a: also gives column_sums[m] = sum over k of A[k][m], the
     * bias gradient, which reads A anyway.  Overwritten.  NULL: none. */
    float *column_sums;
} Product;

/* Algorithms are chosen once per shape and kept.  What the library has no fused form for runs as
 * a product and a kernel of its own, with the same result. */
void cuda_matmul(const Run *run, const Product *product);

/* Workspace for any product, in bytes: run->workspace must hold as much. */
size_t cuda_matmul_workspace(Precision precision);

#ifdef __cplusplus
}
#endif

#endif
