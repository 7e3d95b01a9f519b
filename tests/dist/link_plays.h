/* What ranks do in the tests of links, the same over every kind. */
#ifndef TESTS_DIST_LINK_PLAYS_H
#define TESTS_DIST_LINK_PLAYS_H

#include "../../dist/link.h"

enum { PLAY_SEEN = 64 };

/* What one rank does; returns what the link said.  seen[PLAY_SEEN], zero before, is the rank's, to
 * be looked at after. */
typedef int (*Play)(Link *link, double *seen);

/* Everyone sends to both neighbours and receives from both in one batch, again and again: with
 * blocking sends this would hang at once.  seen: wrong messages from above, from below. */
int play_swap(Link *link, double *seen);

/* Rank 0 sends 0, 1, 2 ... of growing length to rank 1; batches of receives take them in that
 * order.  seen[12]: what came. */
int play_order(Link *link, double *seen);

/* Every rank sends both neighbours values and gradients before it receives any, as schedules do.
 * seen: wrong numbers. */
int play_ahead(Link *link, double *seen);

/* Ranks 0 and 1 send each other much (PLAY_MUCH bytes) at the same time.  seen: wrong numbers. */
int play_much(Link *link, double *seen);
enum { PLAY_MUCH = 40000004 };

/* Rank 0 sends rank 1 16 bytes where 8 are expected. */
int play_wrong_length(Link *link, double *seen);

/* Barriers, then the sum of play_number over ranks.  seen[PLAY_SUMS]: the sums. */
int play_sums(Link *link, double *seen);
enum { PLAY_SUMS = 61 };
double play_number(int rank, size_t i);

/* Each in turn broadcasts.  seen[ranks]: 11 times the root. */
int play_broadcasts(Link *link, double *seen);

/* Even and odd ranks add up rank + 1 among themselves, then send to the next in the group.
 * seen: the sum, and the rank in the whole that the message came from. */
int play_groups(Link *link, double *seen);

/* Rank 2 leaves, and the others wait for it: all directly; ranks 0 and 3 for all, which wait for
 * it. */
int play_leave(Link *link, double *seen);
int play_leave_chain(Link *link, double *seen);

/* Rank 2 gives up: "bcd: the loss is nan". */
int play_give_up(Link *link, double *seen);

#endif
