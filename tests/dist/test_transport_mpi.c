/* Transports over MPI: mpirun starts build/transport-mpi-ranks (mpi/ranks.c).  Skipped where it is
 * not. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../data/scratch.h"
#include "mpirun.h"
#include "transport_cases.h"

/* mpirun's exit status and what it and the ranks said, of the last play. */
static int status;
static char said[1 << 14];

static void read_played(Played *played, int rank) {
    char name[32];
    snprintf(name, sizeof name, "ranks/%d", rank);
    FILE *file = fopen(scratch_path(name), "rb");
    if (!file || fread(played, sizeof *played, 1, file) != 1) *played = (Played){.result = -2};
    if (file) fclose(file);
    unlink(scratch_path(name));
}

static void let_processes_play(Played *played, int ranks, double timeout_s, const PlayRow *play) {
    char line[2000], directory[512];
    snprintf(directory, sizeof directory, "%s", scratch_path("ranks/x"));
    *strrchr(directory, '/') = 0;
    snprintf(line, sizeof line, "timeout -k 5 %d mpirun -n %d %s %s %g %s", 2 * PATIENCE_S, ranks,
             BCD_TRANSPORT_RANKS, play->name, timeout_s, directory);
    status = run_shell(said, sizeof said, line);
    for (int r = 0; r < ranks; r++) read_played(&played[r], r);
    test_note("%s, %d ranks: status %d; %s", play->name, ranks, status, said);
}

static void ends_well(const char *what) {
    CHECK(status == 0, "%s: mpirun ends with %d: %s", what, status, said);
}

static void messages_arrive(void) {
    NEED_MPI();
    for (int ranks = 1; ranks <= MOST_RANKS; ranks += 2) transport_swaps(let_processes_play, ranks);
    ends_well("swap");
    transport_keeps_order(let_processes_play);
    transport_carries_much(let_processes_play);
    ends_well("much");
    transport_sends_ahead(let_processes_play, 4);
    ends_well("ahead");
}

static void all_do_things_together(void) {
    NEED_MPI();
    transport_sums(let_processes_play, 4);
    ends_well("sums");
    transport_broadcasts(let_processes_play, 4);
    transport_shares_much(let_processes_play, 3);
    transport_groups(let_processes_play, 5);
    ends_well("groups");
}

static void wrong_lengths_are_errors(void) {
    NEED_MPI();
    transport_checks_lengths(let_processes_play);
    CHECK(status != 0, "mpirun ends well");
}

static void giving_up_is_told_at_once(void) {
    NEED_MPI();
    transport_loses(let_processes_play, "give-up", "rank 2 gave up: bcd: the loss is nan");
}

/* The others wait for each other, and for it; its line is theirs. */
static void stopped_rank_is_named(void) {
    NEED_MPI();
    transport_waits(let_processes_play, "stop");
}

/* mpirun sees it at once, says so and ends the others. */
static void killed_rank_ends_all(void) {
    NEED_MPI();
    Played played[MOST_RANKS];
    let_processes_play(played, 4, 4 * PATIENCE_S, play_find("kill"));
    CHECK(status != 0, "mpirun ends well");
    CHECK(strstr(said, "rank 2") && strstr(said, "signal 9"), "mpirun says: %s", said);
}

void test_transport_mpi(void) {
    RUN(messages_arrive);
    RUN(all_do_things_together);
    RUN(wrong_lengths_are_errors);
    RUN(giving_up_is_told_at_once);
    RUN(stopped_rank_is_named);
    RUN(killed_rank_ends_all);
}
