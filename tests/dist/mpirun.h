/* Runs programs under mpirun, if there is one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "../test.h"

/* Returns true if mpirun is installed and the MPI transport was built. */
bool mpi_is_here(void);
#define NEED_MPI() \
    if (!mpi_is_here()) SKIP("no mpirun, or built without mpicc")

/* Runs a shell command in the environment that Open MPI needs here.  Overwrites output[size] with
 * what it printed.  Returns its exit status, or minus the signal that ended it. */
int run_shell(char *output, size_t size, const char *command);
