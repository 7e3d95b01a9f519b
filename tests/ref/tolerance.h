/* How far a computed number may be from the truth.
 *
 * A sum of `length` products of numbers up to `magnitude`, each rounded once, has an error that
 * grows like a random walk: sqrt(length) steps of half a unit roundoff times the magnitude
 * (Higham & Mary 2019).  ROUNDINGS allows for the few roundings a term goes through before it is
 * summed (a division, an exponential good to about 2 units in the last place) and for the tail of
 * the walk: among a hundred thousand numbers the worst is 4 to 5 standard deviations out. */
#pragma once

#include <math.h>

#include "../../ref/base/real.h"

#define ROUNDINGS 8.0

static inline double tolerance(double length, double magnitude) {
    return ROUNDINGS * sqrt(length) * (REAL_EPS / 2) * magnitude;
}

/* Five-point differences with step h = 1e-3 in double: the truncation error is h^4/30 times the
 * fifth derivative, 3e-14 for smooth functions of order one and some hundred times that behind a
 * normalisation; rounding adds eps / h = 2e-13.  A wrong formula is off by 1e-3 or more. */
#define DIFFERENCE_STEP 1e-3
#define DIFFERENCE_TOLERANCE 1e-9
