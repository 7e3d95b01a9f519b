#include "mpirun.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../data/scratch.h"

bool mpi_is_here(void) {
    return access(BCD_TRANSPORT_RANKS, X_OK) == 0 && system("command -v mpirun >/dev/null") == 0;
}

/* Open MPI needs to be told to run more ranks than processors, and to run as root, as in a
 * container; and not to bind ranks, or those of all suites that run would share the first
 * processors. The names with PRTE are those of Open MPI 5. What MPI itself does not free is no leak
 * of ours. */
#define ENVIRONMENT                                                                       \
    "export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none " \
    "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "                          \
    "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe "                               \
    "PRTE_MCA_hwloc_default_binding_policy=none ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0"

int run_shell(char *output, size_t size, const char *command) {
    char whole[3000];
    snprintf(whole, sizeof whole, ENVIRONMENT "; (%s) 2>&1 </dev/null", command);
    FILE *pipe = popen(whole, "r");
    size_t count = pipe ? fread(output, 1, size - 1, pipe) : 0;
    output[count] = 0;
    while (pipe && fgetc(pipe) != EOF) continue;
    int code = pipe ? pclose(pipe) : -1;
    return WIFEXITED(code) ? WEXITSTATUS(code) : -WTERMSIG(code);
}

char script_output[1 << 16];

int run_script(const char *script) {
    static int number;
    char line[2600], name[32];
    snprintf(name, sizeof name, "script%d/output", ++number);
    const char *path = scratch_path(name);
    snprintf(line, sizeof line,
             "export bcd=%s source=%s OMP_NUM_THREADS=1; cd $(dirname %s) && "
             "timeout -k 5 800 sh -c '%s'",
             BCD_PROGRAM, BCD_SOURCE_DIR, path, script);
    int status = run_shell(script_output, sizeof script_output, line);
    test_note("status %d: %s", status, script_output);
    return status;
}
