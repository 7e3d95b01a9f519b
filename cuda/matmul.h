/* Matrix products on the device, with what a neural network does right after them: by cuBLASLt on a
 * GPU (gpu/matmul.c), by plain loops under SIMT (simt/matmul.c); matmul.c splits up what these
 * cannot do in one call. */
#pragma once

#include "kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    EPILOGUE_NONE,
    EPILOGUE_GELU,         /* c = gelu(product + bias); saved, unless NULL, gets product + bias */
    EPILOGUE_GELU_GRADIENT /* c = product * gelu'(saved) */
} Epilogue;

/* C[m][n] = op(A)[m][k] op(B)[k][n] row-major, as matmul in ref/fast/matmul.h: row strides ldc,
 * lda, ldb; transpose_a: A is stored [k][m]; transpose_b: B is stored [n][k].  A and B are of the
 * run's value type, C too unless c_float; sums are in float (or better).  Overwrites C, or with
 * `add` accumulates into it (without bias or epilogue).  C must not alias A, B or saved. */
typedef struct {
    void *c;
    const void *a, *b;
    int ldc, lda, ldb;
    bool transpose_a, transpose_b;
    int m, n, k;
    bool add;
    bool c_float;      /* C is float whatever the precision: parameter gradients, without bias */
    const void *bias;  /* [n] of the value type, added to each row; NULL: none */
    Epilogue epilogue; /* ldc must be n */
    void *saved;       /* [m][n] of the value type */
    /* For weight gradients (transpose_a): overwritten with the bias gradient, column_sums[m] = sum
     * over k of A[k][m], because the product reads A anyway.  NULL: not wanted.  Must not be used
     * with bias or epilogue. */
    float *column_sums;
} Product;

/* Version 1 runs the product and a kernel for each other part.  Version 2 runs all in one call, as
 * far as the device's library can; in bf16 the epilogue then sees the product before it is rounded,
 * where version 1 sees it rounded. */
void cuda_matmul(const Run *run, const Product *product);

/* Computes a small product in each precision, so that the library is loaded when this returns; the
 * kernels of other products are loaded when these are first computed.  -1 and an error. */
int cuda_matmul_load(void);

/* Workspace for any product, in bytes; each run->workspace must hold as much, and what
 * cuda_bias_gradient needs for column_sums. */
size_t cuda_matmul_workspace(void);

/* ---- the products of a device (gpu/matmul.c, simt/matmul.c), which cuda_matmul uses ---- */

/* Runs the product in one call of the library.  Algorithms are chosen once per shape and kept.
 * Returns false, having done nothing, if the library cannot do it in one call. */
bool library_matmul(const Run *run, const Product *product);

/* These two are for a program of one thread.  While tuning is on, the first product of a shape
 * measures all that the library offers for it (what C held is lost), and the fastest is taken from
 * then on. */
void library_matmul_tune(bool on);
/* Writes the algorithms that were chosen to a file.  The file is read again where BCD_LT_TABLE
 * names it, or where it lies as matmul.txt next to the program; it serves one GPU and one version
 * of the library.  -1 and an error when there are none, or the file cannot be written. */
int library_matmul_save(const char *path);

/* product.cu: the product alone, without bias, epilogue or column sums, by plain loops; tf32 is
 * computed in fp32. */
void cuda_plain_product(const Run *run, const Product *product);

/* bias.cu: c[i][0..n) = row[0..n) for m rows, row stride ldc; values. */
void cuda_repeat_row(const Run *run, void *c, const void *row, int m, int n, int ldc);

#ifdef __cplusplus
}
#endif
