/* The matrix product that linear layers and attention are made of. */
#pragma once

#include "../base/real.h"

/* C[m][n] = op(A)[m][k] op(B)[k][n] + bias[n], or C += with `add`.  Row strides are ldc, lda and
 * ldb.  With transpose_a A is stored as [k][m], with transpose_b B as [n][k].  bias may be NULL.
 * C must not alias A, B or bias.  Uses all threads, but inside a parallel region only the calling
 * one.  The order in which an element is summed over k depends only on k, so a row's bits do not
 * depend on the other rows. */
void matmul(real *c, ptrdiff_t ldc, const real *a, ptrdiff_t lda, bool transpose_a, const real *b,
            ptrdiff_t ldb, bool transpose_b, const real *bias, int m, int n, int k, bool add);
