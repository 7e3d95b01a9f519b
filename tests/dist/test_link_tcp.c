/* The link over TCP: ranks as threads that meet at a free port of this host, where they only talk,
 * and as processes, where one is killed or stopped. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../ref/error.h"
#include "../test.h"
#include "link_cases.h"
#include "port.h"

typedef struct {
    Launch launch;
    double timeout_s;
    const PlayRow *play;
    Played played;
} Rank;

static void set_ranks(Rank *rank, int ranks, double timeout_s, const PlayRow *play) {
    int port = free_port();
    for (int r = 0; r < ranks; r++)
        rank[r] = (Rank){here(r, ranks, port), timeout_s, play, {.result = -2}};
}

/* The time limit is for what is played: on a busy machine it may take longer to meet. */
static void *run_rank(void *argument) {
    Rank *rank = argument;
    Played *played = &rank->played;
    Link *link = link_tcp_join(&rank->launch, PATIENCE_S);
    played->result = link ? link_barrier(link) : -1;
    if (played->result == 0) {
        link->timeout_s = rank->timeout_s;
        played->result = rank->play->play(link, played->seen);
    }
    snprintf(played->error, sizeof played->error, "%s", played->result ? error_message() : "");
    if (link) link->is->free(link);
    return NULL;
}

static void let_threads_play(Played *played, int ranks, double timeout_s, const PlayRow *play) {
    Rank rank[MOST_RANKS];
    pthread_t thread[MOST_RANKS];
    set_ranks(rank, ranks, timeout_s, play);
    for (int r = 0; r < ranks; r++)
        if (pthread_create(&thread[r], NULL, run_rank, &rank[r])) abort();
    for (int r = 0; r < ranks; r++) {
        pthread_join(thread[r], NULL);
        played[r] = rank[r].played;
    }
}

/* ---- messages -----------------------------------------------------------------------------------
 */

static void messages_arrive(void) {
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
        link_swaps(let_threads_play, ranks);
        link_sends_ahead(let_threads_play, ranks);
    }
    link_keeps_order(let_threads_play);
}

static void large_messages_pass_each_other(void) { link_carries_much(let_threads_play); }

static void wrong_lengths_are_errors(void) { link_checks_lengths(let_threads_play); }

static void all_do_things_together(void) {
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) link_sums(let_threads_play, ranks);
    link_broadcasts(let_threads_play, 4);
    link_shares_much(let_threads_play, 3);
    link_groups(let_threads_play, 5);
}

/* ---- ranks that are gone ------------------------------------------------------------------------
 */

static void missing_rank_is_named(void) {
    link_loses(let_threads_play, "leave", "rank 2 has left");
    link_loses(let_threads_play, "leave-chain", "rank 2 has left");
}

static void giving_up_is_told_at_once(void) {
    link_loses(let_threads_play, "give-up", "rank 2 gave up: bcd: the loss is nan");
}

/* Of which rank 2 is killed at last, if it is still there. */
static void let_processes_play(Played *played, int ranks, double timeout_s, const PlayRow *play) {
    size_t bytes = (size_t)ranks * sizeof(Rank);
    pid_t child[MOST_RANKS] = {0};
    Rank *rank = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (rank == MAP_FAILED) abort();
    set_ranks(rank, ranks, timeout_s, play);
    for (int r = 0; r < ranks; r++) {
        child[r] = fork();
        if (child[r]) continue;
        run_rank(&rank[r]);
        _exit(0);
    }
    for (int r = 0; r < ranks; r++)
        if (r != 2) waitpid(child[r], NULL, 0);
    kill(child[2], SIGKILL);
    waitpid(child[2], NULL, 0);
    for (int r = 0; r < ranks; r++) played[r] = rank[r].played;
    munmap(rank, bytes);
}

static void killed_rank_is_named_at_once(void) {
    link_loses(let_processes_play, "kill", "rank 2 has died: its connection was closed");
}

/* Rank 0 only sends, more than fits anywhere; only it has a time limit. */
static int flood_stopped(Link *link, double *seen) {
    enum { BYTES = 20000000 };
    (void)seen;
    if (link->rank == 2) raise(SIGSTOP);
    if (link->rank) {
        link->timeout_s = PATIENCE_S;
        return link_barrier(link);
    }
    void *data = calloc(BYTES, 1);
    int failed = data ? 0 : error_set("out of memory");
    for (int i = 0; i < 20 && !failed; i++) {
        Transfer t = link_send(2, CHANNEL_VALUES, data, BYTES);
        failed = link->is->exchange(link, &t, 1);
    }
    free(data);
    return failed;
}

/* Rank 2 computes for longer than the others wait: until it is killed. */
static int compute_long(Link *link, double *seen) {
    while (link->rank == 2) pause();
    return play_find("leave-chain")->play(link, seen);
}

/* Though some wait for others, who wait for it. */
static void late_rank_is_named_by_all(void) {
    static const PlayRow flood = {"flood", flood_stopped}, busy = {"busy", compute_long};
    link_waits(let_processes_play, play_find("stop"), "to send a message)");
    link_waits(let_processes_play, &flood, "to take a message)");
    link_waits(let_processes_play, &busy, "to send a message)");
}

void test_link_tcp(void) {
    RUN(messages_arrive);
    RUN(large_messages_pass_each_other);
    RUN(wrong_lengths_are_errors);
    RUN(all_do_things_together);
    RUN(missing_rank_is_named);
    RUN(giving_up_is_told_at_once);
    RUN(killed_rank_is_named_at_once);
    RUN(late_rank_is_named_by_all);
}
