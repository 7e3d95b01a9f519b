/* Runs the project's Python scripts, which are next to the installed program (share/bcd) or in the
 * source tree that it was built in. */
#pragma once

#include <stdio.h>

#include "../cli/command_line.h"

enum { PYTHON_ARGUMENTS = 8 + POSITIONAL_MAX };

typedef enum { PYTHON_DONE, PYTHON_MISSING, PYTHON_FAILED } PythonResult;

/* Writes standard input for a script: to its end, or until the file has an error, as a script may
 * end early.  Called once for each Python that is tried.  Non-zero and an error makes the run
 * fail. */
typedef struct {
    int (*write)(void *context, FILE *to);
    void *context;
} PythonInput;

/* Runs `script`, a path in the source tree, with arguments[count], at most PYTHON_ARGUMENTS - 4 of
 * them.  Its input comes from `in`, its output goes to `out`; NULL stands for our own.  Runs
 * $PYTHON if set, else the first of python3 and /usr/bin/python3 that has the packages (a script
 * that lacks one exits with status 3).  Returns PYTHON_MISSING if there is no such Python,
 * PYTHON_FAILED if the script fails; the error is then the last line that it printed to standard
 * error, or the signal that ended it. */
PythonResult python_run(const char *script, const char *const arguments[], int count,
                        const PythonInput *in, FILE *out);
