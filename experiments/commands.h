/* The commands of `bcd`.  Each returns 0, the exit status, or -1 with an error set; -WRONG_USE when
 * the error is in the command line. */
#ifndef EXPERIMENTS_COMMANDS_H
#define EXPERIMENTS_COMMANDS_H

#include "cli/options.h"

enum { WRONG_USE = 2 }; /* the exit status of wrong use */

int command_train(const Options *options);
int command_eval(const Options *options);
int command_sample(const Options *options);
int command_info(const Options *options);
int command_tokenize(const Options *options);
int command_trace(const Options *options);
int command_gradients(const Options *options);
int command_experiment(const Options *options);
int command_export(const Options *options);
int command_report(const Options *options);
int command_plan(const Options *options);

/* The experiments that are more than a table of trainings, see experiment.c; they return the
 * same. */
int experiment_finetune(const Options *options);
int experiment_memory(const Options *options);
int experiment_cost(const Options *options);
int experiment_timing(const Options *options);
/* Prints the names of all experiments with what they do, for --help. */
void experiment_print_list(void);

#endif
