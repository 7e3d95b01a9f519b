/* Runs programs under mpirun, if there is one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "../test.h"

/* Returns true if mpirun is installed and the MPI transport was built. */
bool mpi_is_here(void);
#define NEED_MPI() \
    if (!mpi_is_here()) SKIP("no mpirun, or built without mpicc")

/* The same for the program under mpirun, which a sanitizer need not watch. */
#define NEED_PROGRAM_UNDER_MPI() \
    NEED_MPI();                  \
    if (TEST_SANITIZED) SKIP("the MPI transport is watched in transport_mpi")

/* Runs a shell command in the environment that Open MPI needs here.  Overwrites output[size] with
 * what it printed.  Returns its exit status, or minus the signal that ended it. */
int run_shell(char *output, size_t size, const char *command);

/* Runs a script without single quotes in a new directory, where $bcd is the program, $source the
 * directory of the sources, and a process has one thread.  Returns its exit status; 124 if it
 * hangs, which is known just before tests/run ends the suite.  What it printed is in script_output.
 */
int run_script(const char *script);
extern char script_output[1 << 16];

/* Shell: "saved FILE" waits until FILE is made or replaced, "stopped PID" until a process is
 * stopped; both end the script if $job, which was started, has ended. */
#define SHELL_WAITS                                                               \
    "until_it() { until \"$@\"; do kill -0 $job || exit 1; sleep 0.05; done; }; " \
    "inode() { stat -c %i $1 2>/dev/null || echo none; }; "                       \
    "is_new() { [ $(inode $1) != $2 ]; }; "                                       \
    "saved() { until_it is_new $1 $(inode $1); }; "                               \
    "stopped() { until_it grep -q \"^State:.T\" /proc/$1/status; }; "
