#include <math.h>

#include "../ref/error.h"
#include "simulate.h"

static int step_over(double *ratio, const Configuration *c, double step_s) {
    Prediction p;
    if (simulate(&p, NULL, c, NULL)) return -1;
    *ratio = p.step_s / step_s;
    return 0;
}

/* Bisects on a logarithmic scale; the step's time falls as the number grows. */
static int bisect(Configuration *c, double *number, double step_s) {
    enum { TURNS = 40 };
    double low = *number * 1e-3, high = *number * 1e3, ratio;
    for (int i = 0; i < TURNS; i++) {
        *number = sqrt(low * high);
        if (step_over(&ratio, c, step_s)) return -1;
        *(ratio > 1 ? &low : &high) = *number;
    }
    return fabs(ratio - 1) < 1e-6
               ? 0
               : error_set("calibrate: no value makes the step take %g s", step_s);
}

int simulate_calibrate(Configuration *c, double *number, double step_s) {
    double before = *number;
    if (bisect(c, number, step_s) == 0) return 0;
    *number = before;
    return -1;
}
