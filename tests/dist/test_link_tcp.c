/* The link over TCP: ranks as threads that meet at a free port of this host, where they only talk,
 * and as processes, where one is killed or stopped. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../dist/deadline.h"
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
    Link *link = link_tcp_join(&rank->launch, 60);
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

static const double never_s = 1e6;

static void missing_rank_is_named(void) {
    link_loses(let_threads_play, "leave", never_s, "rank 2 has left");
    link_loses(let_threads_play, "leave-chain", never_s, "rank 2 has left");
}

static void giving_up_is_told_at_once(void) {
    link_loses(let_threads_play, "give-up", never_s, "rank 2 gave up: bcd: the loss is nan");
}

/* Of which rank 2 is killed at last, if it is still there. */
typedef struct {
    Rank *rank; /* shared with them */
    int ranks;
    pid_t child[MOST_RANKS];
} Processes;

static Processes start_processes(int ranks, double timeout_s, const PlayRow *play) {
    Processes p = {.ranks = ranks};
    p.rank = mmap(NULL, (size_t)ranks * sizeof *p.rank, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p.rank == MAP_FAILED) abort();
    set_ranks(p.rank, ranks, timeout_s, play);
    for (int r = 0; r < ranks; r++) {
        p.child[r] = fork();
        if (p.child[r]) continue;
        run_rank(&p.rank[r]);
        _exit(0);
    }
    return p;
}

static void end_processes(Processes *p, Played *played) {
    for (int r = 0; r < p->ranks; r++)
        if (r != 2) waitpid(p->child[r], NULL, 0);
    kill(p->child[2], SIGKILL);
    waitpid(p->child[2], NULL, 0);
    for (int r = 0; r < p->ranks; r++) played[r] = p->rank[r].played;
    munmap(p->rank, (size_t)p->ranks * sizeof *p->rank);
}

static void let_processes_play(Played *played, int ranks, double timeout_s, const PlayRow *play) {
    Processes p = start_processes(ranks, timeout_s, play);
    end_processes(&p, played);
}

static void killed_rank_is_named_at_once(void) {
    link_loses(let_processes_play, "kill", never_s, "rank 2 has died: its connection was closed");
}

/* Rank 0 only sends, more than fits anywhere; only it has a time limit. */
static int flood_stopped(Link *link, double *seen) {
    enum { BYTES = 20000000 };
    (void)seen;
    if (link->rank == 2) raise(SIGSTOP);
    if (link->rank) {
        link->timeout_s = never_s;
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

/* Rank 2 computes for longer than the others wait. */
static int compute_long(Link *link, double *seen) {
    if (link->rank == 2) nanosleep(&(struct timespec){2, 0}, NULL);
    return play_find("leave-chain")->play(link, seen);
}

static void must_say(Processes *p, const char *words) {
    Played played[MOST_RANKS];
    end_processes(p, played);
    for (int r = 0; r < p->ranks; r++)
        CHECK(r == 2 || (played[r].result == -1 && strstr(played[r].error, words)),
              "rank %d says \"%s\"", r, played[r].error);
}

/* Though some wait for others, who wait for it.  All at the same time, for it takes a while. */
static void late_rank_is_named_by_all(void) {
    static const PlayRow flood = {"flood", flood_stopped}, busy = {"busy", compute_long};
    Processes chain = start_processes(4, 0.5, play_find("stop"));
    Processes flooded = start_processes(4, 0.5, &flood);
    Processes waiting = start_processes(4, 0.5, &busy);
    must_say(&chain, "waited 0.5 s for rank 2 (to send a message)");
    must_say(&flooded, "rank 0 waited 0.5 s for rank 2 (to take a message)");
    must_say(&waiting, "waited 0.5 s for rank 2 (to send a message)");
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
