/* Runs the script of `make run-dist`: one of four processes is killed, and three resume. */
#include <stdio.h>

#include "../data/scratch.h"
#include "mpirun.h"

static void three_resume_after_a_rank_is_killed(void) {
    static char output[1 << 14];
    char line[2000];
    NEED_MPI();
    if (TEST_SANITIZED) SKIP("the MPI transport is watched in transport_mpi");
    snprintf(line, sizeof line, "%s/tests/dist/run_dist --quick --bcd %s --out %s", BCD_SOURCE_DIR,
             BCD_PROGRAM, scratch_path("dist"));
    int status = run_shell(output, sizeof output, line);
    CHECK(status == 0, "status %d:\n%s", status, output);
    test_note("%s", output);
}

void test_run_dist(void) { RUN(three_resume_after_a_rank_is_killed); }
