/* Runs the project's Python scripts: they are found next to the installed program (share/bcd) or in
 * the source tree that it was built in. */
#ifndef EXPERIMENTS_PYTHON_H
#define EXPERIMENTS_PYTHON_H

#include <stdio.h>

#include "../cli/options.h"

enum { PYTHON_ARGUMENTS = 8 + OPTIONS_POSITIONAL };

typedef enum { PYTHON_DONE, PYTHON_MISSING, PYTHON_FAILED } PythonResult;

/* Runs `script`, named from the root of the tree, with arguments[count], at most PYTHON_ARGUMENTS -
 * 4; what it prints goes to `out`, NULL: to ours.  Python is what the environment's PYTHON names,
 * else the first of python3 and /usr/bin/python3 that has the packages: a script that lacks one
 * exits with status 3.  MISSING where there is no such Python, FAILED where the script fails; the
 * error is the last line it complained with. */
PythonResult python_run(const char *script, const char *const arguments[], int count, FILE *out);

#endif
