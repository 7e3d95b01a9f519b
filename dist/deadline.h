/* Deadlines for waiting, on a clock that does not jump when the time of day is set. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

typedef struct timespec Deadline;

static inline Deadline deadline_in(double seconds) {
    Deadline t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    seconds += 1e-9 * (double)t.tv_nsec;
    t.tv_sec += (time_t)seconds;
    t.tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds));
    return t;
}

static inline bool deadline_over(Deadline deadline) {
    Deadline now = deadline_in(0);
    return now.tv_sec > deadline.tv_sec ||
           (now.tv_sec == deadline.tv_sec && now.tv_nsec >= deadline.tv_nsec);
}

/* Initialises a condition variable whose pthread_cond_timedwait takes a Deadline. */
static inline void deadline_condition(pthread_cond_t *condition) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}
