/* Rotary positions (settings.h) for the tiles of fast_attention. */
#ifndef REF_FAST_ROPE_H
#define REF_FAST_ROPE_H

#include "../ops/settings.h"
#include "../real.h"

enum { ROPE_PAIRS = 64 }; /* the most pairs in one call */

typedef struct {
    int d;                     /* elements of a head */
    const real *cosine, *sine; /* [t][d/2] */
} Angles;

/* Computes the angles of t positions, in scratch of the calling thread. */
Angles rope_angles(const Rope *rope, int t, int d);

/* Rotates pairs [pair, pair + pairs), pairs <= ROPE_PAIRS, of x[rows][ldx], where row i is at
 * position `position` + i.  Overwrites to[rows][2 ROPE_PAIRS]: a row has the first elements of the
 * pairs, then the second ones. */
void rope_rotate_rows(real *to, const real *x, int ldx, const Angles *angles, int position,
                      int rows, int pair, int pairs);

/* The gradient of this: rotates `from`, laid out as `to` is, back and adds it to dx[rows][ldx]. */
void rope_unrotate_rows(real *dx, int ldx, const real *from, const Angles *angles, int position,
                        int rows, int pair, int pairs);

#endif
