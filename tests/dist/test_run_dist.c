/* A training over processes of which one is killed, by the script that `make run-dist` runs. */
#include <stdio.h>

#include "../data/scratch.h"
#include "mpirun.h"

static void run(const char *kind) {
    static char said[1 << 14];
    char line[2000];
    snprintf(line, sizeof line, "%s/tests/dist/run_dist --quick --link %s --bcd %s --out %s",
             BCD_SOURCE_DIR, kind, BCD_PROGRAM, scratch_path("dist"));
    int status = run_shell(said, sizeof said, line);
    CHECK(status == 0, "status %d:\n%s", status, said);
    test_note("%s", said);
}

static void killed_under_mpi(void) {
    NEED_MPI();
    if (TEST_SANITIZED) SKIP("the MPI link is watched in link_mpi, such a training over TCP");
    run("mpi");
}

static void killed_over_tcp(void) { run("tcp"); }

void test_run_dist(void) {
    RUN(killed_under_mpi);
    RUN(killed_over_tcp);
}
