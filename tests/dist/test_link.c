/* Links between ranks, here as threads of this process. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "../test.h"
#include "link_plays.h"

enum { MOST_RANKS = 5 };

typedef struct {
    Link *link;
    Play play;
    int result;
    double seen[PLAY_SEEN];
    char error[400];
} Rank;

static void *run_rank(void *argument) {
    Rank *rank = argument;
    rank->result = rank->play(rank->link, rank->seen);
    strcpy(rank->error, rank->result ? error_message() : "");
    rank->link->is->free(rank->link);
    return NULL;
}

static void run_ranks(Rank *rank, int ranks, int capacity, double timeout_s, Play play) {
    Link *link[MOST_RANKS];
    pthread_t thread[MOST_RANKS];
    memset(rank, 0, MOST_RANKS * sizeof *rank);
    if (!CHECK(link_local_create(link, ranks, capacity, timeout_s, NULL) == 0, "%s",
               error_message()))
        return;
    for (int r = 0; r < ranks; r++) {
        rank[r].link = link[r];
        rank[r].play = play;
        if (pthread_create(&thread[r], NULL, run_rank, &rank[r])) abort();
    }
    for (int r = 0; r < ranks; r++) pthread_join(thread[r], NULL);
}

static void must_succeed(const Rank *rank, int ranks) {
    for (int r = 0; r < ranks; r++)
        CHECK(rank[r].result == 0, "rank %d of %d: %s", r, ranks, rank[r].error);
}

/* ---- messages ----------------------------------------------------------------------------------
 */

static void neighbours_never_block(void) {
    Rank rank[MOST_RANKS];
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++)
        for (int capacity = 1; capacity <= 3; capacity++) {
            run_ranks(rank, ranks, capacity, 10, play_swap);
            must_succeed(rank, ranks);
            for (int r = 0; r < ranks; r++)
                CHECK(rank[r].seen[0] == 0 && rank[r].seen[1] == 0,
                      "rank %d of %d: %g and %g wrong messages", r, ranks, rank[r].seen[0],
                      rank[r].seen[1]);
        }
}

static void channels_keep_their_order(void) {
    Rank rank[MOST_RANKS];
    for (int capacity = 1; capacity <= 5; capacity++) {
        run_ranks(rank, 2, capacity, 10, play_order);
        must_succeed(rank, 2);
        for (int i = 0; i < 12; i++)
            CHECK(rank[1].seen[i] == i, "message %d is %g", i, rank[1].seen[i]);
    }
}

static void sends_go_ahead_of_receives(void) {
    Rank rank[MOST_RANKS];
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
        run_ranks(rank, ranks, 6, 10, play_ahead);
        must_succeed(rank, ranks);
        for (int r = 0; r < ranks; r++)
            CHECK(rank[r].seen[0] == 0, "rank %d of %d: %g wrong", r, ranks, rank[r].seen[0]);
    }
}

static void large_messages_pass_each_other(void) {
    Rank rank[MOST_RANKS];
    run_ranks(rank, 2, 2, 10, play_much);
    must_succeed(rank, 2);
    for (int r = 0; r < 2; r++)
        CHECK(rank[r].seen[0] == 0, "rank %d: %g wrong numbers", r, rank[r].seen[0]);
}

static void wrong_lengths_are_errors(void) {
    Rank rank[MOST_RANKS];
    run_ranks(rank, 2, 1, 10, play_wrong_length);
    for (int r = 0; r < 2; r++)
        CHECK(strstr(rank[r].error, "rank 0 sent 16 bytes where rank 1 expects 8"),
              "rank %d: \"%s\"", r, rank[r].error);
}

/* ---- all together -------------------------------------------------------------------------------
 */

static void sums_are_in_the_order_of_ranks(void) {
    Rank rank[MOST_RANKS];
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
        run_ranks(rank, ranks, 1, 10, play_sums);
        must_succeed(rank, ranks);
        for (size_t i = 0; i < PLAY_SUMS; i++) {
            real sum = 0;
            for (int r = 0; r < ranks; r++) sum += (real)play_number(r, i);
            for (int r = 0; r < ranks; r++)
                CHECK(rank[r].seen[i] == (double)sum, "rank %d of %d: [%zu] is %.9g, not %.9g", r,
                      ranks, i, rank[r].seen[i], (double)sum);
        }
    }
}

static void broadcasts_reach_all(void) {
    Rank rank[MOST_RANKS];
    run_ranks(rank, 4, 1, 10, play_broadcasts);
    must_succeed(rank, 4);
    for (int r = 0; r < 4; r++)
        for (int root = 0; root < 4; root++)
            CHECK(rank[r].seen[root] == 11 * root, "rank %d has %g from rank %d", r,
                  rank[r].seen[root], root);
}

static void groups_are_links(void) {
    Rank rank[MOST_RANKS];
    run_ranks(rank, 5, 1, 10, play_groups);
    must_succeed(rank, 5);
    for (int r = 0; r < 5; r++) {
        static const int below[5] = {4, 3, 0, 1, 2};
        CHECK(rank[r].seen[0] == (r % 2 ? 2 + 4 : 1 + 3 + 5), "rank %d adds up to %g", r,
              rank[r].seen[0]);
        CHECK(rank[r].seen[1] == below[r], "rank %d hears from %g", r, rank[r].seen[1]);
    }
}

/* ---- ranks that are gone ------------------------------------------------------------------------
 */

/* All ranks but the missing one end with the same line, which names it. */
static void check_lost(Play play, double timeout_s, const char *words) {
    Rank rank[MOST_RANKS];
    run_ranks(rank, 4, 1, timeout_s, play);
    for (int r = 0; r < 4; r++) {
        if (r == 2) continue;
        CHECK(rank[r].result == -1, "rank %d goes on without rank 2", r);
        CHECK(strstr(rank[r].error, words), "rank %d says \"%s\"", r, rank[r].error);
    }
}

static void missing_rank_is_named(void) {
    check_lost(play_leave, 0.2, "rank 2");
    check_lost(play_leave_chain, 0.2, "rank 2");
}

static void giving_up_is_told_at_once(void) {
    check_lost(play_give_up, 1e6, "rank 2 gave up: bcd: the loss is nan");
}

void test_link(void) {
    RUN(neighbours_never_block);
    RUN(channels_keep_their_order);
    RUN(sends_go_ahead_of_receives);
    RUN(large_messages_pass_each_other);
    RUN(wrong_lengths_are_errors);
    RUN(sums_are_in_the_order_of_ranks);
    RUN(broadcasts_reach_all);
    RUN(groups_are_links);
    RUN(missing_rank_is_named);
    RUN(giving_up_is_told_at_once);
}
