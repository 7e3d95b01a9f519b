/* Runs the program itself, as a user would. */
#ifndef TESTS_EXPERIMENTS_PROGRAM_H
#define TESTS_EXPERIMENTS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What one run printed; valid until the next. */
typedef struct {
    int status; /* of exit, or minus the signal */
    char out[1 << 16], error[1 << 12];
} Printed;

/* Runs `bcd LINE` in the scratch directory (words are split at spaces, '' is an empty one) and
 * waits.  file_limit: largest file it may write, 0: any. */
const Printed *program_run(const char *line, size_t file_limit);

/* Starts it without waiting; its output goes to the scratch file "started".  program_wait gives
 * what Printed.status is. */
pid_t program_start(const char *line);
bool program_runs(pid_t process);
int program_wait(pid_t process);

/* Runs it with a terminal as its output, and returns what it printed there; NULL where the system
 * has no terminal to give (a bare chroot). */
const char *program_on_terminal(const char *line);

void sleep_ms(int ms);

#endif
