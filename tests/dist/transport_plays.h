/* What ranks do in the tests of transports, the same over every kind. */
#ifndef TESTS_DIST_TRANSPORT_PLAYS_H
#define TESTS_DIST_TRANSPORT_PLAYS_H

#include "../../dist/transport.h"

enum { PLAY_SEEN = 64 };

/* What one rank does; returns what the transport said.  seen[PLAY_SEEN], zero before, is the
 * rank's, to be looked at after. */
typedef int (*Play)(Transport *transport, double *seen);

typedef struct {
    const char *name;
    Play play;
} PlayRow;

/*  swap          Everyone sends to both neighbours and receives from both in one batch, again and
 *                again: with blocking sends this would hang at once.  seen: wrong messages from
 *                above, from below
 *  order         Rank 0 sends 0, 1, 2 ... of growing length to rank 1, where batches of receives
 *                take them in that order.  seen[12]: what came
 *  ahead         Every rank sends both neighbours values and gradients before it receives any, as
 *                schedules do.  seen: wrong numbers
 *  much          Ranks 0 and 1 send each other 40 MB at the same time.  seen: wrong numbers
 *  wrong-length  Rank 0 sends rank 1 16 bytes where 8 are expected
 *  sums          Barriers, then the sum of play_number over ranks.  seen[PLAY_SUMS]: the sums
 *  broadcasts    Each in turn.  seen[ranks]: 11 times the root
 *  large         Sums and a broadcast of a million numbers.  seen: wrong sums, wrong numbers
 *  groups        Even and odd ranks add up rank + 1 among themselves, then each sends to the next
 *                of its group.  seen: the sum, and the rank that the message came from
 *  leave         Rank 2 leaves.  Rank 3 waits for rank 0, that for rank 1, and that, which comes
 *                when half the time is over, for rank 2: the first whose patience ends does not
 *                wait for the rank that failed
 *  give-up       Rank 2 gives up: "bcd: the loss is nan"
 *  kill, stop    Rank 2, a process, kills or stops itself (signals), instead of leaving
 */
const PlayRow *play_find(const char *name);

enum { PLAY_SUMS = 61 };
double play_number(int rank, size_t i);

#endif
