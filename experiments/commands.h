/* The commands of `bcd`.  Each returns 0, the exit status, or -1 with an error set; -WRONG_USE when
 * the error is in the command line. */
#pragma once

#include "cli/command_line.h"

enum { WRONG_USE = 2 }; /* the exit status of wrong use */

int command_train(const CommandLine *line);
int command_eval(const CommandLine *line);
int command_sample(const CommandLine *line);
int command_info(const CommandLine *line);
int command_tokenize(const CommandLine *line);
int command_trace(const CommandLine *line);
int command_gradients(const CommandLine *line);
int command_experiment(const CommandLine *line);
int command_export(const CommandLine *line);
int command_plan(const CommandLine *line);

/* The experiments that are more than a table of trainings, see experiment.c; they return the
 * same. */
int experiment_finetune(const CommandLine *line);
int experiment_memory(const CommandLine *line);
int experiment_cost(const CommandLine *line);
int experiment_timing(const CommandLine *line);
/* Prints the names of all experiments with what they do, for --help. */
void experiment_print_list(void);
