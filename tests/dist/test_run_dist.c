/* A training over processes of which one is killed, by the script that `make run-dist` runs. */
#include <stdio.h>

#include "../data/scratch.h"
#include "mpirun.h"

static void killed_rank_is_named_and_three_go_on(void) {
    static char said[1 << 14];
    char line[2000];
    NEED_MPI();
    if (TEST_SANITIZED) SKIP("the MPI transport is watched in transport_mpi");
    snprintf(line, sizeof line, "%s/tests/dist/run_dist --quick --bcd %s --out %s", BCD_SOURCE_DIR,
             BCD_PROGRAM, scratch_path("dist"));
    int status = run_shell(said, sizeof said, line);
    CHECK(status == 0, "status %d:\n%s", status, said);
    test_note("%s", said);
}

void test_run_dist(void) { RUN(killed_rank_is_named_and_three_go_on); }
