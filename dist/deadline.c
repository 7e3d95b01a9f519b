#include "deadline.h"

Deadline deadline_in(double seconds) {
    Deadline t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    seconds += 1e-9 * (double)t.tv_nsec;
    t.tv_sec += (time_t)seconds;
    t.tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds));
    return t;
}

static double left_s(Deadline deadline) {
    Deadline now = deadline_in(0);
    return (double)(deadline.tv_sec - now.tv_sec) + 1e-9 * (double)(deadline.tv_nsec - now.tv_nsec);
}

bool deadline_over(Deadline deadline) { return left_s(deadline) <= 0; }

void deadline_condition(pthread_cond_t *condition) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}
