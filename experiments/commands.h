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

#endif
