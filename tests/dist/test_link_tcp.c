/* The link over TCP: ranks as threads that meet at a free port of this host, where they only talk,
 * and as processes, where one is killed or stopped. */
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../dist/deadline.h"
#include "../../dist/link_tcp.h"
#include "../../ref/error.h"
#include "../test.h"
#include "link_plays.h"

enum { MOST_RANKS = 5 };

typedef struct {
    Launch launch;
    double timeout_s;
    Play play;
    int result; /* of the play, 1: there was no link */
    double seen[PLAY_SEEN], seconds;
    char error[400];
} Rank;

static int listen_somewhere(int *port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (s < 0 || bind(s, (struct sockaddr *)&at, size) || listen(s, 10) ||
        getsockname(s, (struct sockaddr *)&at, &size))
        abort();
    *port = ntohs(at.sin_port);
    return s;
}

static int free_port(void) {
    int port;
    close(listen_somewhere(&port));
    return port;
}

static void set_ranks(Rank *rank, int ranks, double timeout_s, Play play) {
    int port = free_port();
    for (int r = 0; r < ranks; r++) {
        rank[r] = (Rank){
            .launch = {r, ranks, "127.0.0.1", port, ""}, .timeout_s = timeout_s, .play = play};
    }
}

static double now_s(void) {
    struct timespec t = deadline_in(0);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *run_rank(void *argument) {
    Rank *rank = argument;
    double start = now_s();
    Link *link = link_tcp_join(&rank->launch, rank->timeout_s);
    rank->result = link ? rank->play(link, rank->seen) : 1;
    snprintf(rank->error, sizeof rank->error, "%s", rank->result ? error_message() : "");
    rank->seconds = now_s() - start;
    if (link) link->is->free(link);
    return NULL;
}

static void run_threads(Rank *rank, int ranks) {
    pthread_t thread[MOST_RANKS];
    for (int r = 0; r < ranks; r++)
        if (pthread_create(&thread[r], NULL, run_rank, &rank[r])) abort();
    for (int r = 0; r < ranks; r++) pthread_join(thread[r], NULL);
}

static void play(Rank *rank, int ranks, double timeout_s, Play what) {
    set_ranks(rank, ranks, timeout_s, what);
    run_threads(rank, ranks);
}

static void must_succeed(const Rank *rank, int ranks) {
    for (int r = 0; r < ranks; r++)
        CHECK(rank[r].result == 0, "rank %d of %d: %s", r, ranks, rank[r].error);
}

/* ---- messages -----------------------------------------------------------------------------------
 */

static void neighbours_never_block(void) {
    Rank rank[MOST_RANKS];
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
        play(rank, ranks, 20, play_swap);
        must_succeed(rank, ranks);
        for (int r = 0; r < ranks; r++)
            CHECK(rank[r].seen[0] == 0 && rank[r].seen[1] == 0,
                  "rank %d of %d: %g and %g wrong messages", r, ranks, rank[r].seen[0],
                  rank[r].seen[1]);
    }
}

static void channels_keep_their_order(void) {
    Rank rank[MOST_RANKS];
    play(rank, 2, 20, play_order);
    must_succeed(rank, 2);
    for (int i = 0; i < 12; i++)
        CHECK(rank[1].seen[i] == i, "message %d is %g", i, rank[1].seen[i]);
}

static void check_no_wrong(int ranks, Play what) {
    Rank rank[MOST_RANKS];
    play(rank, ranks, 20, what);
    must_succeed(rank, ranks);
    for (int r = 0; r < ranks; r++)
        CHECK(rank[r].seen[0] == 0, "rank %d of %d: %g wrong numbers", r, ranks, rank[r].seen[0]);
}

static void sends_go_ahead_of_receives(void) { check_no_wrong(3, play_ahead); }
static void large_messages_pass_each_other(void) { check_no_wrong(2, play_much); }

static void wrong_lengths_are_errors(void) {
    Rank rank[MOST_RANKS];
    play(rank, 3, 20, play_wrong_length);
    for (int r = 0; r < 3; r++)
        CHECK(strstr(rank[r].error, "rank 0 sent 16 bytes where rank 1 expects 8"),
              "rank %d: \"%s\"", r, rank[r].error);
}

/* ---- all together -------------------------------------------------------------------------------
 */

typedef struct {
    Link *link;
    Play play;
    double seen[PLAY_SEEN];
} LocalRank;

static void *run_local(void *argument) {
    LocalRank *rank = argument;
    rank->play(rank->link, rank->seen);
    rank->link->is->free(rank->link);
    return NULL;
}

/* All that ranks do together comes out as between threads, to the bit. */
static void check_as_local(int ranks, Play what) {
    Rank rank[MOST_RANKS];
    Link *link[MOST_RANKS];
    LocalRank local[MOST_RANKS] = {{0}};
    pthread_t thread[MOST_RANKS];
    if (link_local_create(link, ranks, 1, 20, NULL)) abort();
    for (int r = 0; r < ranks; r++) {
        local[r] = (LocalRank){.link = link[r], .play = what};
        if (pthread_create(&thread[r], NULL, run_local, &local[r])) abort();
    }
    for (int r = 0; r < ranks; r++) pthread_join(thread[r], NULL);
    play(rank, ranks, 20, what);
    must_succeed(rank, ranks);
    for (int r = 0; r < ranks; r++)
        CHECK(memcmp(rank[r].seen, local[r].seen, sizeof rank[r].seen) == 0,
              "rank %d of %d has %.9g first, %.9g over the local link", r, ranks, rank[r].seen[0],
              local[r].seen[0]);
}

static void collectives_are_the_local_ones(void) {
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) check_as_local(ranks, play_sums);
    check_as_local(4, play_broadcasts);
    check_as_local(5, play_groups);
}

/* ---- ranks that are gone ------------------------------------------------------------------------
 */

/* All but rank 2 end with a line that says `words`, and soon. */
static void check_lost(const Rank *rank, const char *words) {
    for (int r = 0; r < 4; r++) {
        if (r == 2) continue;
        CHECK(rank[r].result == -1 && strstr(rank[r].error, words), "rank %d: %d, \"%s\"", r,
              rank[r].result, rank[r].error);
        CHECK(rank[r].seconds < 20, "rank %d took %g s", r, rank[r].seconds);
    }
}

static void missing_rank_is_named(void) {
    Rank rank[MOST_RANKS];
    play(rank, 4, 1e6, play_leave);
    check_lost(rank, "rank 2 has left");
    play(rank, 4, 1e6, play_leave_chain);
    check_lost(rank, "rank 2 has left");
}

static void giving_up_is_told_at_once(void) {
    Rank rank[MOST_RANKS];
    play(rank, 4, 1e6, play_give_up);
    check_lost(rank, "rank 2 gave up: bcd: the loss is nan");
}

/* As processes; those that are left in the end are killed. */
static void play_processes(Rank *result, int ranks, double timeout_s, Play what) {
    size_t bytes = (size_t)ranks * sizeof(Rank);
    Rank *rank = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child[MOST_RANKS];
    if (rank == MAP_FAILED) abort();
    set_ranks(rank, ranks, timeout_s, what);
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
    memcpy(result, rank, bytes);
    munmap(rank, bytes);
}

static int play_killed(Link *link, double *seen) {
    (void)seen;
    if (link_barrier(link)) return -1;
    if (link->rank == 2) raise(SIGKILL);
    return link_barrier(link);
}

/* Rank 1 waits for rank 2, rank 0 for rank 1, rank 3 for rank 0. */
static int play_stopped(Link *link, double *seen) {
    static const int waits_for[4] = {1, 2, 2, 0};
    Transfer t = link_receive(waits_for[link->rank], CHANNEL_VALUES, seen, sizeof *seen);
    if (link_barrier(link)) return -1;
    if (link->rank == 2) raise(SIGSTOP);
    return link->is->exchange(link, &t, 1);
}

/* Rank 0 only sends, and would send more than fits anywhere. */
static int play_stopped_receiver(Link *link, double *seen) {
    enum { BYTES = 40000000 };
    if (link_barrier(link)) return -1;
    if (link->rank == 2) raise(SIGSTOP);
    if (link->rank) return link_barrier(link);
    void *data = calloc(BYTES, 1);
    int failed = 0;
    (void)seen;
    for (int i = 0; i < 20 && !failed; i++) {
        Transfer t = link_send(2, CHANNEL_VALUES, data, BYTES);
        failed = link->is->exchange(link, &t, 1);
    }
    free(data);
    return failed;
}

static void killed_rank_is_named_at_once(void) {
    Rank rank[MOST_RANKS];
    play_processes(rank, 4, 1e6, play_killed);
    check_lost(rank, "rank 2 has died: its connection was closed");
}

static void stopped_rank_is_named_by_all(void) {
    Rank rank[MOST_RANKS];
    play_processes(rank, 4, 0.3, play_stopped);
    check_lost(rank, "waited 0.3 s for rank 2");
    play_processes(rank, 4, 0.3, play_stopped_receiver);
    check_lost(rank, "waited 0.3 s for rank 2");
}

void test_link_tcp(void) {
    RUN(neighbours_never_block);
    RUN(channels_keep_their_order);
    RUN(sends_go_ahead_of_receives);
    RUN(large_messages_pass_each_other);
    RUN(wrong_lengths_are_errors);
    RUN(collectives_are_the_local_ones);
    RUN(missing_rank_is_named);
    RUN(giving_up_is_told_at_once);
    RUN(killed_rank_is_named_at_once);
    RUN(stopped_rank_is_named_by_all);
}
