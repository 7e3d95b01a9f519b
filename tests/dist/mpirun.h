/* Running things under mpirun, where there is one. */
#ifndef TESTS_DIST_MPIRUN_H
#define TESTS_DIST_MPIRUN_H

#include <stdbool.h>
#include <stddef.h>

#include "../test.h"

/* Whether mpirun is here and the MPI transport was built. */
bool mpi_is_here(void);
#define NEED_MPI() \
    if (!mpi_is_here()) SKIP("no mpirun, or built without mpicc")

/* Runs a line of the shell, with what MPI wants to find in the environment.  Returns its exit
 * status, minus the signal that ended it; said[size]: what it printed. */
int run_shell(char *said, size_t size, const char *line);

#endif
