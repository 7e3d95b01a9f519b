/* What the ranks do in the tests of transports, the same over every kind of transport. */
#pragma once

#include "../../dist/transport.h"

enum { SCENARIO_RESULTS = 64 };

typedef struct {
    const char *name;
    /* Does the part of one rank.  results[SCENARIO_RESULTS] is zero before; the list below says
     * what each scenario writes there.  Returns 0, or -1 and the error of the transport. */
    int (*run)(Transport *transport, double *results);
    bool reports; /* a process ends as one of a training does: one of them reports the error */
} Scenario;

/*  swap          Every rank sends to both neighbours and receives from both in one batch, again and
 *                again; with blocking sends this would deadlock.  results: the number of wrong
 *                messages from above, and from below
 *  order         Rank 0 sends 0, 1, 2 ... of growing length to rank 1, where batches of receives
 *                take them in that order.  results[12]: what was received
 *  ahead         Every rank sends both neighbours values and gradients before it receives any, as
 *                schedules do.  results: the number of wrong numbers
 *  much          Ranks 0 and 1 send each other 40 MB at the same time.  results: the number of
 *                wrong numbers
 *  too-long      Rank 0 sends rank 1 more bytes than it expects
 *  too-short     Rank 0 sends rank 1 fewer bytes than it expects
 *  sums          Barriers, then the sum of scenario_number over ranks.  results[SCENARIO_SUMS]:
 *                the sums
 *  broadcasts    From each rank in turn.  results[ranks]: 11 times the root
 *  large         Sums and a broadcast of a million numbers.  results: the number of wrong ones of
 *                each
 *  moves         Each rank in turn moves 20 MB, more than a batch of pieces, to the next; then all
 *                gather them.  results: the number of wrong bytes of each
 *  groups        Even and odd ranks add up rank + 1 among themselves, then each sends to the next
 *                of its group.  results: the sum, the rank that the message came from, and 1 if a
 *                peer was overwritten
 *  leave         Rank 2 ends.  Rank 3 waits for rank 0, rank 0 for rank 1, and rank 1, which starts
 *                after half of the timeout, for rank 2: the ranks whose timeout ends first do not
 *                wait for the rank that failed
 *  give-up       Rank 2 aborts with "bcd: the loss is nan"
 *  kill, stop    As leave, but rank 2, a process, sends itself SIGKILL or SIGSTOP
 *  compute       Rank 1, a process, takes three times the timeout between two barriers
 *  hang          As leave, but rank 2, a process, takes 15 times the timeout and sends nothing
 *  stop-in-sums  Rank 2, a process, sends itself SIGSTOP; the others add up 4 MB with it, and each
 *                of them has sent it what it cannot take back
 *  free-early    Rank 2 aborts while ranks 0 and 1 are in a long transfer, whose memory they then
 *                give back to the system
 *  all-give-up   All ranks abort at once, each with its own reason
 *  rest-gives-up As all-give-up, but rank 0, a process, sends itself SIGSTOP
 */
const Scenario *scenario_find(const char *name);

enum { SCENARIO_SUMS = 61 };
double scenario_number(int rank, size_t i);
