/* The commands of `bcd`, one function each: 0 or the exit status; -1 with an error set. */
#ifndef EXPERIMENTS_COMMANDS_H
#define EXPERIMENTS_COMMANDS_H

#include "cli/options.h"

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

/* Those of `bcd experiment NAME` that are more than a table of trainings (experiment.c), likewise;
 * and the names of all, with what they do, for --help. */
int experiment_finetune(const Options *options);
int experiment_memory(const Options *options);
int experiment_cost(const Options *options);
int experiment_timing(const Options *options);
void experiment_print_list(void);

#endif
