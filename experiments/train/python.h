/* Runs the project's Python scripts, which are next to the installed program (share/bcd) or in the
 * source tree that it was built in. */
#pragma once

#include <stdio.h>

#include "../cli/command_line.h"

enum { PYTHON_ARGUMENTS = 8 + POSITIONAL_MAX };

typedef enum { PYTHON_DONE, PYTHON_MISSING, PYTHON_FAILED } PythonResult;

/* Runs `script`, a path in the source tree, with arguments[count], at most PYTHON_ARGUMENTS - 4 of
 * them.  Its output goes to `out`, or to standard output if that is NULL.  Runs $PYTHON if set,
 * else the first of python3 and /usr/bin/python3 that has the packages (a script that lacks one
 * exits with status 3).  Returns PYTHON_MISSING if there is no such Python, PYTHON_FAILED if the
 * script fails; the error is then the last line that it printed to standard error. */
PythonResult python_run(const char *script, const char *const arguments[], int count, FILE *out);
