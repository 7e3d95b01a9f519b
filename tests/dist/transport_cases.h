/* Cases that every kind of link passes: plays (transport_plays.h), and what must come of them. */
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

/* Lets `ranks` ranks, joined by a link of some kind, each play; fills played[ranks]. */
typedef void (*LetPlay)(Played *played, int ranks, double timeout_s, const PlayRow *play);

/* For any number of ranks from 1 to MOST_RANKS. */
void link_swaps(LetPlay let, int ranks);
void link_sends_ahead(LetPlay let, int ranks);
void link_sums(LetPlay let, int ranks);
void link_broadcasts(LetPlay let, int ranks);
void link_shares_much(LetPlay let, int ranks);
void link_groups(LetPlay let, int ranks);
/* Of two ranks. */
void link_keeps_order(LetPlay let);
void link_carries_much(LetPlay let);
void link_checks_lengths(LetPlay let);
/* Time limit, in seconds, of what must happen: no machine is so busy. */
enum { PATIENCE_S = 600 };
/* Of four: rank 2 is missing; the others are told, and end with the same line, which has these
 * words. */
void link_loses(LetPlay let, const char *play, const char *words);
/* Likewise, but nobody tells them: after a short time limit they say that the rank `late` (2 of
 * link_plays) was waited for so long, for `what`. */
void link_waits(LetPlay let, const PlayRow *play, const char *what);

#endif
