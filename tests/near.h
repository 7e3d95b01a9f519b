/* Numbers in double that are computed in two ways. */
#pragma once

#include <math.h>
#include <stdbool.h>

/* Returns true if they differ by the rounding of some operations, and none of them is NaN. */
static inline bool near(double a, double b) { return fabs(a - b) <= 1e-12 * (fabs(a) + fabs(b)); }
