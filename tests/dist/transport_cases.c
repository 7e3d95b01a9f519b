#include "transport_cases.h"

#include <stdio.h>
#include <string.h>

#include "../test.h"

/* All ranks must succeed. */
static void play(Played *played, LetPlay let, int ranks, const char *name) {
    memset(played, 0, MOST_RANKS * sizeof *played);
    let(played, ranks, PATIENCE_S, play_find(name));
    for (int r = 0; r < ranks; r++)
        CHECK(played[r].result == 0, "%s: rank %d of %d: %s", name, r, ranks, played[r].error);
}

static void nothing_wrong(LetPlay let, int ranks, const char *name) {
    Played played[MOST_RANKS];
    play(played, let, ranks, name);
    for (int r = 0; r < ranks; r++)
        CHECK(played[r].seen[0] == 0 && played[r].seen[1] == 0,
              "%s: rank %d of %d: %g and %g are wrong", name, r, ranks, played[r].seen[0],
              played[r].seen[1]);
}

void transport_swaps(LetPlay let, int ranks) { nothing_wrong(let, ranks, "swap"); }
void transport_sends_ahead(LetPlay let, int ranks) { nothing_wrong(let, ranks, "ahead"); }
void transport_shares_much(LetPlay let, int ranks) { nothing_wrong(let, ranks, "large"); }
void transport_carries_much(LetPlay let) { nothing_wrong(let, 2, "much"); }

void transport_keeps_order(LetPlay let) {
    Played played[MOST_RANKS];
    play(played, let, 2, "order");
    for (int i = 0; i < 12; i++)
        CHECK(played[1].seen[i] == i, "message %d is %g", i, played[1].seen[i]);
}

void transport_checks_lengths(LetPlay let) {
    Played played[MOST_RANKS] = {{0}};
    let(played, 2, PATIENCE_S, play_find("wrong-length"));
    for (int r = 0; r < 2; r++)
        CHECK(strstr(played[r].error, "rank 0 sent 16 bytes where rank 1 expects 8"),
              "rank %d: \"%s\"", r, played[r].error);
}

/* In the order of ranks, whatever the transport and the time: bit for bit. */
void transport_sums(LetPlay let, int ranks) {
    Played played[MOST_RANKS];
    play(played, let, ranks, "sums");
    for (size_t i = 0; i < PLAY_SUMS; i++) {
        real sum = 0;
        for (int r = 0; r < ranks; r++) sum += (real)play_number(r, i);
        for (int r = 0; r < ranks; r++)
            CHECK(played[r].seen[i] == (double)sum, "rank %d of %d: [%zu] is %.9g, not %.9g", r,
                  ranks, i, played[r].seen[i], (double)sum);
    }
}

void transport_broadcasts(LetPlay let, int ranks) {
    Played played[MOST_RANKS];
    play(played, let, ranks, "broadcasts");
    for (int r = 0; r < ranks; r++)
        for (int root = 0; root < ranks; root++)
            CHECK(played[r].seen[root] == 11 * root, "rank %d of %d has %g from rank %d", r, ranks,
                  played[r].seen[root], root);
}

void transport_groups(LetPlay let, int ranks) {
    Played played[MOST_RANKS];
    play(played, let, ranks, "groups");
    for (int r = 0; r < ranks; r++) {
        int sum = 0, last = r;
        for (int i = r % 2; i < ranks; i += 2) {
            sum += i + 1;
            last = i;
        }
        int below = r >= 2 ? r - 2 : last;
        CHECK(played[r].seen[0] == sum, "rank %d of %d adds up to %g, not %d", r, ranks,
              played[r].seen[0], sum);
        CHECK(played[r].seen[1] == below, "rank %d of %d hears from rank %g, not %d", r, ranks,
              played[r].seen[1], below);
    }
}

static void check_lost(const Played *played, const char *name, const char *words) {
    for (int r = 0; r < 4; r++) {
        if (r == 2) continue;
        CHECK(played[r].result == -1, "%s: rank %d goes on without rank 2", name, r);
        CHECK(strstr(played[r].error, words), "%s: rank %d says \"%s\"", name, r, played[r].error);
    }
}

void transport_loses(LetPlay let, const char *name, const char *words) {
    Played played[MOST_RANKS] = {{0}};
    let(played, 4, PATIENCE_S, play_find(name));
    check_lost(played, name, words);
}

/* Not rank 1's, which need ask nobody who is missing. */
static bool all_say(const Played *played, const char *words) {
    for (int r = 0; r < 4; r++) {
        const char *error = played[r].error;
        bool says = played[r].result == -1 && strstr(error, words);
        if (r != 2 && (!says || strstr(error, "rank 1 waited"))) return false;
    }
    return true;
}

/* On a busy machine rank 1 may come too late, and be named itself: then longer limits are tried. */
void transport_waits(LetPlay let, const char *play) {
    Played played[MOST_RANKS];
    char words[100];
    for (double limit_s = 0.25; limit_s < 100; limit_s *= 4) {
        memset(played, 0, sizeof played);
        let(played, 4, limit_s, play_find(play));
        snprintf(words, sizeof words, "waited %g s for rank 2 (", limit_s);
        if (all_say(played, words)) return;
    }
    check_lost(played, play, words);
    CHECK(all_say(played, words), "%s: none but rank 1 finds out: %s", play, played[0].error);
}
