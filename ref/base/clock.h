/* Time for measuring durations: seconds and milliseconds since some fixed moment, on a clock that
 * does not jump when the time of day is set. */
#pragma once

#include <time.h>

static inline double clock_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline double clock_ms(void) { return 1e3 * clock_seconds(); }
