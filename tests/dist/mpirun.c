#include "mpirun.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

bool mpi_is_here(void) {
    return access(BCD_TRANSPORT_RANKS, X_OK) == 0 && system("command -v mpirun >/dev/null") == 0;
}

/* Open MPI needs to be told to run more ranks than processors, and to run as root, as in a
 * container. What MPI itself does not free is no leak of ours. */
#define ENVIRONMENT                                                        \
    "export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_ALLOW_RUN_AS_ROOT=1 " \
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0"

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
