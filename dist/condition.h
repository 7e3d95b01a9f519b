/* Condition variables that wait until a moment of clock_seconds. */
#pragma once

#include <math.h>
#include <pthread.h>

#include "../ref/base/clock.h"

static inline void condition_init(pthread_cond_t *condition) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/* Returns 0, or ETIMEDOUT. */
static inline int condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, double until) {
    const struct timespec moment = {.tv_sec = (time_t)until,
                                    .tv_nsec = (long)(1e9 * (until - floor(until)))};
    return pthread_cond_timedwait(condition, lock, &moment);
}
