/* The transport over MPI: mpirun starts build/transport-mpi-ranks (mpi/ranks.c).  Skipped without
 * mpirun. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../data/scratch.h"
#include "mpirun.h"
#include "transport_cases.h"

/* Of the last run: the exit status of mpirun, and what it and the ranks printed. */
static int status;
static char output[1 << 14];

static void read_outcome(Outcome *outcome, int rank) {
    char name[32];
    snprintf(name, sizeof name, "ranks/%d", rank);
    FILE *file = fopen(scratch_path(name), "rb");
    if (!file || fread(outcome, sizeof *outcome, 1, file) != 1) *outcome = (Outcome){.result = -2};
    if (file) fclose(file);
    unlink(scratch_path(name));
}

static void run_on_processes(Outcome *outcome, int ranks, double timeout_s,
                             const Scenario *scenario) {
    char line[2000], directory[512];
    snprintf(directory, sizeof directory, "%s", scratch_path("ranks/x"));
    *strrchr(directory, '/') = 0;
    snprintf(line, sizeof line, "timeout -k 5 %d mpirun -n %d %s %s %g %s", 2 * TIME_LIMIT_S, ranks,
             BCD_TRANSPORT_RANKS, scenario->name, timeout_s, directory);
    status = run_shell(output, sizeof output, line);
    for (int r = 0; r < ranks; r++) read_outcome(&outcome[r], r);
    test_note("%s, %d ranks: status %d; %s", scenario->name, ranks, status, output);
}

static void ends_well(const char *what) {
    CHECK(status == 0, "%s: mpirun ends with %d: %s", what, status, output);
}

static void messages_arrive(void) {
    NEED_MPI();
    for (int ranks = 1; ranks <= MAX_RANKS; ranks += 2) transport_swaps(run_on_processes, ranks);
    ends_well("swap");
    transport_keeps_order(run_on_processes);
    transport_carries_much(run_on_processes);
    ends_well("much");
    transport_sends_ahead(run_on_processes, 4);
    ends_well("ahead");
}

static void collectives_are_right(void) {
    NEED_MPI();
    transport_sums(run_on_processes, 4);
    ends_well("sums");
    transport_broadcasts(run_on_processes, 4);
    transport_shares_much(run_on_processes, 3);
    transport_groups(run_on_processes, 5);
    ends_well("groups");
}

static void wrong_lengths_are_errors(void) {
    NEED_MPI();
    transport_checks_lengths(run_on_processes);
    CHECK(status != 0, "mpirun ends well");
}

static void abort_reaches_all_at_once(void) {
    NEED_MPI();
    transport_reports_failure(run_on_processes, "give-up", "rank 2 gave up: bcd: the loss is nan");
}

/* The other ranks wait for it or for each other, and all of them name it. */
static void stopped_rank_is_named(void) {
    NEED_MPI();
    transport_names_silent_rank(run_on_processes, "stop", "it has died or hangs");
}

/* It does not wait for a message, but answers. */
static void computing_rank_is_waited_for(void) {
    NEED_MPI();
    Outcome outcome[MAX_RANKS];
    run_on_processes(outcome, 3, 1, scenario_find("compute"));
    for (int r = 0; r < 3; r++) CHECK(outcome[r].result == 0, "rank %d: %s", r, outcome[r].error);
    ends_well("compute");
}

/* But not for ever. */
static void rank_that_never_sends_is_named(void) {
    NEED_MPI();
    transport_names_silent_rank(run_on_processes, "hang", "it runs, but has not done so for ");
}

/* Several find a failure at once, and none knows of the others'. */
static void one_rank_reports(const char *scenario, double timeout_s, const char *words) {
    Outcome outcome[MAX_RANKS];
    run_on_processes(outcome, 4, timeout_s, scenario_find(scenario));
    const char *first = strstr(output, " reports it");
    CHECK(status > 0 && strstr(output, words), "status %d: %s", status, output);
    CHECK(first && !strstr(first + 1, " reports it"), "%s", output);
}

static void lowest_rank_reports(void) {
    NEED_MPI();
    one_rank_reports("all-give-up", TIME_LIMIT_S, "rank 0 reports it");
    one_rank_reports("rest-gives-up", TIME_LIMIT_S, "rank 1 reports it");
}

/* The transfers that the others have begun with the stopped rank cannot end. */
static void one_rank_reports_what_cannot_end(void) {
    NEED_MPI();
    one_rank_reports("stop-in-sums", 2, "rank 0 reports it");
}

/* MPI would otherwise go on with them, and read and write what is not there any more. */
static void transfers_end_before_their_memory_is_freed(void) {
    NEED_MPI();
    one_rank_reports("free-early", TIME_LIMIT_S, "rank 0 reports it");
    CHECK(!strstr(output, "Signal") && !strstr(output, "Bad address"), "%s", output);
}

/* mpirun notices at once and ends the others; Open MPI's names the rank. */
static void killed_rank_ends_all(void) {
    NEED_MPI();
    Outcome outcome[MAX_RANKS];
    run_on_processes(outcome, 4, 4 * TIME_LIMIT_S, scenario_find("kill"));
    CHECK(status != 0, "mpirun ends well");
    CHECK(strstr(output, "signal 9"), "mpirun says: %s", output);
}

void test_transport_mpi(void) {
    RUN(messages_arrive);
    RUN(collectives_are_right);
    RUN(wrong_lengths_are_errors);
    RUN(abort_reaches_all_at_once);
    RUN(stopped_rank_is_named);
    RUN(computing_rank_is_waited_for);
    RUN(rank_that_never_sends_is_named);
    RUN(lowest_rank_reports);
    RUN(one_rank_reports_what_cannot_end);
    RUN(transfers_end_before_their_memory_is_freed);
    RUN(killed_rank_ends_all);
}
