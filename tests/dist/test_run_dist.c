/* The program under mpirun. */
#include <stdio.h>
#include <string.h>

#include "../data/scratch.h"
#include "mpirun.h"

/* Runs the script of `make run-dist`: one of four processes is killed, and three resume. */
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

/* A rank of another build might read the run config wrongly.  The other build is a copy of this one
 * in which the name of the commit is changed; only its beginning, as a compiler may store a name in
 * pieces of eight characters.  Status 77: it does so in smaller ones. */
static void another_build_is_refused(void) {
    static char output[1 << 14];
    char line[2000];
    NEED_MPI();
    if (TEST_SANITIZED) SKIP("the MPI transport is watched in transport_mpi");
    snprintf(line, sizeof line,
             "set -e; bcd=%s; mkdir -p %s; cd %s; ln -sf $(dirname $bcd)/libbcd-mpi.so .; "
             "name=$($bcd --version | cut -c 5-11); "
             "sed \"s/$name/$(echo $name | tr 0-9a-z 1-9a-z0)/g\" $bcd >bcd; chmod +x bcd; "
             "[ \"$(./bcd --version)\" != \"$($bcd --version)\" ] || exit 77; "
             "train='train --pipeline mpi --data synthetic --limit 8 --batch 4 --steps 1 --quiet'; "
             "mpirun -n 1 $bcd $train : -n 1 ./bcd $train",
             BCD_PROGRAM, scratch_path("other"), scratch_path("other"));
    int status = run_shell(output, sizeof output, line);
    if (status == 77) SKIP("the name of the commit cannot be changed in this program");
    CHECK(status > 0 && strstr(output, "pipeline: rank 1 is another build ("), "status %d:\n%s",
          status, output);
}

void test_run_dist(void) {
    RUN(three_resume_after_a_rank_is_killed);
    RUN(another_build_is_refused);
}
