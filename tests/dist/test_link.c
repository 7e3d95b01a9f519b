/* Links between ranks, here as threads of this process. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../dist/link.h"
#include "../../ref/error.h"
#include "../../ref/random.h"
#include "../test.h"

enum { MOST_RANKS = 5 };

/* What each rank does; returns what the link said.  `seen` is the rank's, to be looked at after. */
typedef int (*Play)(Link *link, double *seen);

typedef struct {
    Link *link;
    Play play;
    int result;
    double seen[64];
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

/* Everyone sends to both neighbours and receives from both in one batch, again and again: with
 * blocking sends this would hang at once. */
static int swap_with_neighbours(Link *link, double *seen) {
    int up = (link->rank + 1) % link->ranks, down = (link->rank + link->ranks - 1) % link->ranks;
    for (int round = 0; round < 50; round++) {
        double mine = 100 * link->rank + round, from_up = -1, from_down = -1;
        Transfer batch[4] = {
            link_send(up, CHANNEL_VALUES, &mine, sizeof mine),
            link_send(down, CHANNEL_GRADIENTS, &mine, sizeof mine),
            link_receive(up, CHANNEL_GRADIENTS, &from_up, sizeof mine),
            link_receive(down, CHANNEL_VALUES, &from_down, sizeof mine),
        };
        if (link->is->exchange(link, batch, 4)) return -1;
        seen[0] += from_up != 100 * up + round;
        seen[1] += from_down != 100 * down + round;
    }
    return 0;
}

static void neighbours_never_block(void) {
    Rank rank[MOST_RANKS];
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++)
        for (int capacity = 1; capacity <= 3; capacity++) {
            run_ranks(rank, ranks, capacity, 10, swap_with_neighbours);
            must_succeed(rank, ranks);
            for (int r = 0; r < ranks; r++)
                CHECK(rank[r].seen[0] == 0 && rank[r].seen[1] == 0,
                      "rank %d of %d: %g and %g wrong messages", r, ranks, rank[r].seen[0],
                      rank[r].seen[1]);
        }
}

/* Rank 0 sends 1, 2, 3 ... of growing length; a batch of receives takes them in that order. */
static int send_in_order(Link *link, double *seen) {
    double buffer[3][40] = {{0}};
    for (int round = 0; round < 12; round += 3) {
        Transfer batch[3];
        for (int i = 0; i < 3; i++) {
            size_t length = (size_t)(round + i + 1);
            for (size_t k = 0; k < length && link->rank == 0; k++) buffer[i][k] = round + i;
            batch[i] = (Transfer){link->rank == 0, 1 - link->rank,          CHANNEL_VALUES,
                                  buffer[i],       length * sizeof(double), NULL};
        }
        if (link->is->exchange(link, batch, 3)) return -1;
        for (int i = 0; i < 3; i++) seen[round + i] = buffer[i][round + i];
    }
    return 0;
}

static void channels_keep_their_order(void) {
    Rank rank[MOST_RANKS];
    for (int capacity = 1; capacity <= 5; capacity++) {
        run_ranks(rank, 2, capacity, 10, send_in_order);
        must_succeed(rank, 2);
        for (int i = 0; i < 12; i++)
            CHECK(rank[1].seen[i] == i, "message %d is %g", i, rank[1].seen[i]);
    }
}

static int send_too_much(Link *link, double *seen) {
    Transfer t = link->rank == 0 ? link_send(1, CHANNEL_VALUES, seen, 16)
                                 : link_receive(0, CHANNEL_VALUES, seen, 8);
    return link->is->exchange(link, &t, 1) || link_barrier(link);
}

static void wrong_lengths_are_errors(void) {
    Rank rank[MOST_RANKS];
    run_ranks(rank, 2, 1, 10, send_too_much);
    for (int r = 0; r < 2; r++)
        CHECK(strstr(rank[r].error, "rank 0 sent 16 bytes where rank 1 expects 8"),
              "rank %d: \"%s\"", r, rank[r].error);
}

/* ---- all together -------------------------------------------------------------------------------
 */

static double number(int rank, size_t i) {
    return random_uniform(7, (uint32_t)rank, i) * (rank == 1 ? 1e6 : 1);
}

static int add_up(Link *link, double *seen) {
    real x[61];
    for (size_t i = 0; i < 61; i++) x[i] = (real)number(link->rank, i);
    for (int round = 0; round < 20; round++)
        if (link_barrier(link)) return -1;
    if (link_all_reduce(link, x, 61)) return -1;
    for (size_t i = 0; i < 61; i++) seen[i] = (double)x[i];
    return 0;
}

static void sums_are_in_the_order_of_ranks(void) {
    Rank rank[MOST_RANKS];
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
        run_ranks(rank, ranks, 1, 10, add_up);
        must_succeed(rank, ranks);
        for (size_t i = 0; i < 61; i++) {
            real sum = 0;
            for (int r = 0; r < ranks; r++) sum += (real)number(r, i);
            for (int r = 0; r < ranks; r++)
                CHECK(rank[r].seen[i] == (double)sum, "rank %d of %d: [%zu] is %.9g, not %.9g", r,
                      ranks, i, rank[r].seen[i], (double)sum);
        }
    }
}

static int broadcast_from_each(Link *link, double *seen) {
    for (int root = 0; root < link->ranks; root++) {
        double data[3] = {link->rank, 10 * link->rank, -1};
        if (link_broadcast(link, root, data, sizeof data)) return -1;
        seen[root] = data[0] + data[1];
    }
    return 0;
}

static void broadcasts_reach_all(void) {
    Rank rank[MOST_RANKS];
    run_ranks(rank, 4, 1, 10, broadcast_from_each);
    must_succeed(rank, 4);
    for (int r = 0; r < 4; r++)
        for (int root = 0; root < 4; root++)
            CHECK(rank[r].seen[root] == 11 * root, "rank %d has %g from rank %d", r,
                  rank[r].seen[root], root);
}

/* ---- ranks that are gone ------------------------------------------------------------------------
 */

static int leave_rank_2(Link *link, double *seen) {
    (void)seen;
    return link->rank == 2 ? 0 : link_barrier(link);
}

static int wait_for_rank_2(Link *link, double *seen) {
    Transfer t = link_receive(2, CHANNEL_VALUES, seen, sizeof *seen);
    if (link->rank == 2) return 0;
    return link->rank == 1 ? link->is->exchange(link, &t, 1) : link_barrier(link);
}

static int give_up_at_2(Link *link, double *seen) {
    (void)seen;
    if (link->rank == 2) link->is->give_up(link, "bcd: the loss is nan");
    return link->rank == 2 ? 0 : link_barrier(link);
}

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
    check_lost(leave_rank_2, 0.2, "rank 2");
    check_lost(wait_for_rank_2, 0.2, "rank 2");
}

static void giving_up_is_told_at_once(void) {
    check_lost(give_up_at_2, 1e6, "rank 2 gave up: bcd: the loss is nan");
}

void test_link(void) {
    RUN(neighbours_never_block);
    RUN(channels_keep_their_order);
    RUN(wrong_lengths_are_errors);
    RUN(sums_are_in_the_order_of_ranks);
    RUN(broadcasts_reach_all);
    RUN(missing_rank_is_named);
    RUN(giving_up_is_told_at_once);
}
