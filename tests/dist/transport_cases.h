/* Cases that every kind of transport passes: plays (transport_plays.h), and what must come of them.
 */
#ifndef TESTS_DIST_TRANSPORT_CASES_H
#define TESTS_DIST_TRANSPORT_CASES_H

#include "transport_plays.h"

enum { MOST_RANKS = 5 };

/* What came of one rank's part. */
typedef struct {
    int result;
    double seen[PLAY_SEEN];
    char error[400];
} Played;

/* Lets `ranks` ranks, joined by a transport of some kind, each play; fills played[ranks]. */
typedef void (*LetPlay)(Played *played, int ranks, double timeout_s, const PlayRow *play);

/* For any number of ranks from 1 to MOST_RANKS. */
void transport_swaps(LetPlay let, int ranks);
void transport_sends_ahead(LetPlay let, int ranks);
void transport_sums(LetPlay let, int ranks);
void transport_broadcasts(LetPlay let, int ranks);
void transport_shares_much(LetPlay let, int ranks);
void transport_groups(LetPlay let, int ranks);
/* Of two ranks. */
void transport_keeps_order(LetPlay let);
void transport_carries_much(LetPlay let);
void transport_checks_lengths(LetPlay let);
/* Time limit, in seconds, of what must happen: no machine is so busy. */
enum { PATIENCE_S = 600 };
/* Of four: rank 2 is missing; the others are told, and end with the same line, which has these
 * words. */
void transport_loses(LetPlay let, const char *play, const char *words);
/* Likewise, but nobody tells them: after a short time limit they name the rank that failed. */
void transport_waits(LetPlay let, const char *play);

#endif
