/* The experiments of `bcd experiment NAME`: each a function like those of commands.h, and a row in
 * experiment.c. */
#ifndef EXPERIMENTS_EXPERIMENT_H
#define EXPERIMENTS_EXPERIMENT_H

#include "cli/options.h"

int experiment_validity(const Options *options);
int experiment_compression(const Options *options);
int experiment_ufp(const Options *options);
int experiment_switching(const Options *options);
int experiment_converged_pilot(const Options *options);
int experiment_converged(const Options *options);
int experiment_finetune(const Options *options);
int experiment_memory(const Options *options);
int experiment_cost(const Options *options);
int experiment_timing(const Options *options);

/* Where an experiment writes: --out, or else results, results-smoke, results-gpu, results-paper. */
void experiment_dir(char dir[OPTION_TEXT], const Options *options);

/* Their names and what they do, for --help. */
void experiment_print_list(void);

#endif
