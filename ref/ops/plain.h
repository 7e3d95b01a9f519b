/* Shared by the files of this folder.
 *
 * The fast ops and the kernels are tested against the ops here, so these sum in double whatever
 * `real` is, and round the result once; only embedding_weight_gradient adds up in `real`.  Indices
 * are ptrdiff_t, so that no product of sizes overflows. */
#pragma once

#include "ops.h"

/* Overwrites one element of a gradient, or adds to it. */
static inline void set_or_add(real *to, double value, bool add) {
    *to = (real)(add ? *to + value : value);
}

/* Rotates one head x[d] by the angles of its position, in place; -position rotates it back. */
void rope_rotate(double *x, const Rope *rope, int position, int d);
