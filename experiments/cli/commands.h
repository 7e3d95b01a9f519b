/* The commands of `bcd`.  Each returns 0, the exit status, or -1 with an error set; -WRONG_USE when
 * the error is in the command line. */
#pragma once

#include "command_line.h"

enum { WRONG_USE = 2 }; /* the exit status of wrong use */

int command_train(const CommandLine *line);
int command_eval(const CommandLine *line);
int command_sample(const CommandLine *line);
int command_info(const CommandLine *line);
int command_tokenize(const CommandLine *line);
int command_trace(const CommandLine *line);
int command_gradients(const CommandLine *line);
extern const char gradients_format[]; /* the `format` attribute of its file */
int command_export(const CommandLine *line);
int command_plan(const CommandLine *line);
