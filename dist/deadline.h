/* Deadlines for waiting, on a clock that does not jump when the time of day is set. */
#ifndef DIST_DEADLINE_H
#define DIST_DEADLINE_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

typedef struct timespec Deadline;

Deadline deadline_in(double seconds);
bool deadline_over(Deadline deadline);

/* Initialises a condition variable whose pthread_cond_timedwait takes a Deadline. */
void deadline_condition(pthread_cond_t *condition);

#endif
