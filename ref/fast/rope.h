/* Rotary positions (settings.h) for fast_attention. */
#pragma once

#include "../base/real.h"
#include "../ops/settings.h"

typedef struct {
    int d;                     /* elements of a head */
    const real *cosine, *sine; /* [t][d/2] */
} Angles;

/* Returns the angles of t positions, in scratch of the calling thread.  The attention calls of a
 * model all want the same, so they are computed only if the last call on this thread wanted others,
 * or fewer. */
Angles rope_angles(const Rope *rope, int t, int d);

/* Overwrites to[t][d] with the rows of x[t][ldx], row i rotated to position i. */
void rope_rotate_rows(real *to, const real *x, ptrdiff_t ldx, const Angles *angles, int t);

/* The gradient of this: rotates from[t][d] back and adds it to dx[t][ldx]. */
void rope_unrotate_rows(real *dx, ptrdiff_t ldx, const real *from, const Angles *angles, int t);
