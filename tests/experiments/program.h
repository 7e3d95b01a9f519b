/* Runs the program as a user would. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "../../experiments/cli/command_line.h"

/* What one run printed. It is valid until the next run. */
typedef struct {
    int status; /* the exit status, or minus the signal that ended it */
    char out[1 << 16], error[1 << 12];
} Printed;

/* Parses `bcd TEXT` with command_line_parse. The text is split at spaces; '' is an empty word. */
int parse_line(CommandLine *line, const char *text);
/* The same for `bcd train`, whose flags alone matter. */
int parse_train(Options *options, const char *text);

/* A line that is refused, and with which words. */
typedef struct {
    const char *line, *error;
} Wrong;

/* Runs `bcd LINE` in the scratch directory and waits for its end.  file_limit is the size of the
 * largest file that it may write, 0 for any. */
const Printed *program_run(const char *line, size_t file_limit);

/* The same for a program whose time is over before it begins: SIGALRM, which bcd experiment sends
 * then, is there, and held back until the program takes it. */
const Printed *program_run_late(const char *line);

/* Starts the program without waiting. What it prints goes to the scratch file "started".
 * program_wait returns what Printed.status is. */
pid_t program_start(const char *line);
bool program_runs(pid_t process);
int program_wait(pid_t process);

/* Runs the program with a terminal as its output, and returns what it printed there; NULL where the
 * system has no terminal to give, as in a bare chroot. */
const char *program_on_terminal(const char *line);

void sleep_ms(int ms);
