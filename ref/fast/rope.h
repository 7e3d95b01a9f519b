/* The turning of rotary positions (attention.h), for the attention of the reference. */
#ifndef REF_FAST_ROPE_H
#define REF_FAST_ROPE_H

#include "../ops/attention.h"
#include "../real.h"

enum { ROPE_PAIRS = 64 }; /* of one call */

typedef struct {
    int d;                     /* elements of a head */
    const real *cosine, *sine; /* [t][d/2] */
} Angles;

/* The angles of t positions, in scratch of the calling thread. */
Angles rope_angles(const Rope *rope, int t, int d);

/* Turns `pairs` <= ROPE_PAIRS pairs, from number `pair` on, of rows x[rows][ldx] that stand at
 * `position` and on.  to[rows][2 ROPE_PAIRS]: first the pairs' first elements, from pairs on the
 * second. */
void rope_turn(real *to, const real *x, int ldx, const Angles *angles, int position, int rows,
               int pair, int pairs);

/* The gradient: turns `from`, laid out as `to` above, back and adds it to dx[rows][ldx]. */
void rope_turn_back(real *dx, int ldx, const real *from, const Angles *angles, int position,
                    int rows, int pair, int pairs);

#endif
