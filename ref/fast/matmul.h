/* The matrix product with a bias, for linear.c; the plain one is in ops.h. */
#ifndef REF_FAST_MATMUL_H
#define REF_FAST_MATMUL_H

#include "../real.h"

/* As matmul of ops.h without `add`, plus bias[n] (NULL: none) to every row. */
void matmul_bias(real *c, int ldc, const real *a, int lda, bool transpose_a, const real *b, int ldb,
                 bool transpose_b, const real *bias, int m, int n, int k);

#endif
