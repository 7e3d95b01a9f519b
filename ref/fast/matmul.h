/* The matrix product that linear layers and attention are made of. */
#ifndef REF_FAST_MATMUL_H
#define REF_FAST_MATMUL_H

#include "../real.h"

/* C[m][n] = op(A)[m][k] op(B)[k][n], or C += with `add`.  Row strides ldc, lda, ldb.  transpose_a:
 * A is stored [k][m]; transpose_b: B is stored [n][k].  Uses all threads; inside a parallel region
 * it runs on the calling thread alone.  Each element is summed over k in an order that depends on k
 * alone, so a row's bits do not depend on the other rows. */
void matmul(real *c, int ldc, const real *a, int lda, bool transpose_a, const real *b, int ldb,
            bool transpose_b, int m, int n, int k, bool add);

/* The same without `add`, plus bias[n] (NULL: none) to every row. */
void matmul_bias(real *c, int ldc, const real *a, int lda, bool transpose_a, const real *b, int ldb,
                 bool transpose_b, const real *bias, int m, int n, int k);

#endif
