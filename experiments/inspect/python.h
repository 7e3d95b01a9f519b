/* Runs the project's Python scripts, which are next to the installed program (share/bcd) or in the
 * source tree that it was built in.  They run under $PYTHON if set, else under the first of python3
 * and /usr/bin/python3 that has the packages; a script that lacks one exits with status 3. */
#pragma once

#include <stddef.h>
#include <stdio.h>

enum { PYTHON_ARGUMENTS = 8 };

/* Writes standard input for a script: to its end, or until the file has an error, as a script may
 * end early.  Called once for each Python that is tried.  Non-zero and an error makes the run
 * fail. */
typedef struct {
    int (*write)(void *context, FILE *to);
    void *context;
} PythonInput;

/* Runs `script`, a path in the source tree, with arguments[count], at most PYTHON_ARGUMENTS - 4 of
 * them.  Its input comes from `in`, its output goes to `out`, a regular file.  -1 and an error:
 * there is no Python with the packages, or the script fails; the error is then the last line that
 * it printed to standard error, or the signal that ended it. */
int python_run(const char *script, const char *const arguments[], int count, const PythonInput *in,
               FILE *out);

/* A script that goes on running, and answers questions. */
typedef struct PythonProcess PythonProcess;

/* Starts a script, and overwrites line[size] with the line that it writes when it is ready.  NULL
 * and an error: as of python_run. */
PythonProcess *python_open(const char *script, const char *const arguments[], int count, char *line,
                           int size);
/* Asks with question[bytes], and returns the answer, of *answered bytes, until the next question or
 * the end.  NULL and an error: the script has ended, see python_run. */
const unsigned char *python_ask(PythonProcess *python, const void *question, size_t bytes,
                                size_t *answered);
/* Lets it end; NULL is allowed. */
void python_close(PythonProcess *python);
