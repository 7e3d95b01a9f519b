/* The experiments of `bcd experiment NAME`: each a row in experiment.c; those that are more than a
 * table of trainings have a function like those of commands.h. */
#ifndef EXPERIMENTS_EXPERIMENT_H
#define EXPERIMENTS_EXPERIMENT_H

#include "cli/options.h"

int experiment_finetune(const Options *options);
int experiment_memory(const Options *options);
int experiment_cost(const Options *options);
int experiment_timing(const Options *options);

/* Where an experiment writes: --out, or else results, results-smoke, results-gpu, results-paper. */
void experiment_dir(char dir[OPTION_TEXT], const Options *options);

/* Their names and what they do, for --help. */
void experiment_print_list(void);

#endif
