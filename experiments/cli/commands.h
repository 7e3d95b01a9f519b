/* The commands of `bcd`.  Each returns 0, the exit status, or -1 with an error set; -WRONG_USE when
 * the error is in the command line. */
#pragma once

#include "command_line.h"

enum { WRONG_USE = 2 }; /* the exit status of wrong use */

#define COMMAND_FUNCTION(NAME, name) int command_##name(const CommandLine *line);
EACH_COMMAND(COMMAND_FUNCTION)

extern const char gradients_format[]; /* the `format` attribute of the file of bcd gradients */
