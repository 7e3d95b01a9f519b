/* How long a loop has waited for another rank, in turns.  A turn counts at most a tenth of a
 * second, so that the time in which a job was suspended does not count, and one in which a busy
 * machine let this process wait, and perhaps the others, counts less. */
#pragma once

#include <math.h>

#include "../../ref/base/clock.h"

typedef struct {
    double seconds, last;
} Waiting;

static inline Waiting waiting_start(void) { return (Waiting){.last = clock_seconds()}; }

/* Ends a turn.  Returns the seconds so far. */
static inline double waiting_turn(Waiting *w) {
    const double now = clock_seconds();
    w->seconds += fmin(now - w->last, 0.1);
    w->last = now;
    return w->seconds;
}
