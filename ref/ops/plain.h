/* How the ops of this folder compute, for their files alone.
 *
 * They are what the fast ones and the kernels are held against, so they sum in double whatever
 * `real` is: each result is then the formula's, rounded once, and no argument about the order of
 * a sum is needed.  Indices are ptrdiff_t, in which no product of sizes overflows. */
#ifndef REF_OPS_PLAIN_H
#define REF_OPS_PLAIN_H

#include "ops.h"

/* Hands over a number of a gradient: in place of what is there, or added to it. */
static inline void put(real *to, double value, bool add) {
    *to = (real)(add ? *to + value : value);
}

/* rope.c: turns one head x[d] by the angles of its position, in place; -position turns it back. */
void rope_rotate(double *x, const Rope *rope, int position, int d);

#endif
