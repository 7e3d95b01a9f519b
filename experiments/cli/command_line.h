/* What `bcd COMMAND ...` is given: flags and names of files. */
#pragma once

#include "options.h"

enum { POSITIONAL_MAX = 64 };

/* The flags and files of `bcd COMMAND ...`. */
typedef struct {
    Options options;
    bool help;
    const char *positional[POSITIONAL_MAX]; /* DIR, FILE..., as the command takes them */
    int positionals;
} CommandLine;

/* Overwrites a command line with what it would be without flags. */
void command_line_defaults(CommandLine *line, Command command);

/* Reads a command line (argv[0] is the program, argv[1] the command).  -1 and an error that names
 * the right flags or values.  With --help anywhere only the command and `help` are set; command 0
 * asks for help about the program. */
int command_line_parse(CommandLine *line, int argc, char **argv);

/* Prints the help of the program (command 0) or of a command. */
void options_print_help(Command command);
