/* When waiting ends, on a clock that does not jump with the time of day. */
#ifndef DIST_DEADLINE_H
#define DIST_DEADLINE_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

typedef struct timespec Deadline;

Deadline deadline_in(double seconds);
bool deadline_over(Deadline deadline);

/* Makes a condition whose pthread_cond_timedwait takes deadlines. */
void deadline_condition(pthread_cond_t *condition);

#endif
