/* What layernorm and rmsnorm share. */
#ifndef REF_FAST_NORM_H
#define REF_FAST_NORM_H

#include "../real.h"

/* dg[c] = sum_n dy[n][c] (x[n][c] - mean[n]) r[n], or += with `add`; mean NULL: 0. */
void norm_scale_gradient(real *dg, const real *dy, const real *x, const real *mean, const real *r,
                         int n, int c, bool add);

#endif
