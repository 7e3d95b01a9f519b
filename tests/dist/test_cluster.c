/* Small clusters, as operators have them: hosts, MPICH, Slurm.  The script says what each needs. */
#include <stdio.h>
#include <string.h>

#include "../data/scratch.h"
#include "mpirun.h"

static void holds(const void *data) {
    static char output[1 << 14];
    char line[2000], name[40];
    NEED_PROGRAM_UNDER_MPI();
    snprintf(name, sizeof name, "cluster-%s", (const char *)data);
    snprintf(line, sizeof line, "timeout -k 10 850 %s/tests/dist/cluster %s %s %s", BCD_SOURCE_DIR,
             (const char *)data, BCD_PROGRAM, scratch_path(name));
    const int status = run_shell(output, sizeof output, line);
    if (status == 77) SKIP("%.*s", (int)strcspn(output, "\n"), output);
    CHECK(status == 0, "status %d:\n%s", status, output);
}

void test_cluster(void) {
    RUN_ROW("three hosts", holds, "hosts");
    RUN_ROW("a link breaks", holds, "link");
    RUN_ROW("MPICH", holds, "mpich");
    RUN_ROW("Slurm", holds, "slurm");
}
