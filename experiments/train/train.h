/* `bcd train` as a function, and the evaluation of a model. */
#ifndef EXPERIMENTS_TRAIN_H
#define EXPERIMENTS_TRAIN_H

#include "eval.h"

typedef struct {
    char dir[OPTION_TEXT];  /* of run.h5 and checkpoint.h5 */
    bool interrupted;       /* stopped by a signal; the checkpoint is written */
    uint64_t steps;         /* done */
    double epochs, seconds; /* of training; evaluation and saving left out */
    double train_loss;      /* mean of the last tenth of an epoch, at least ten steps */
    Evaluation valid;       /* of the validation split, at the end */
    size_t peak_bytes;      /* total, as the allocator counted */
} RunSummary;

/* Sets what the run that options->like names was trained with, but for the flags given.  -1 and an
 * error. */
int train_like(Options *options);

/* Takes over options->world.  Trains into options->out (a fresh name under runs/ when empty), or
 * goes on in options->resume. Where `out` holds a run already: goes on with it if options->go_on (a
 * finished one is only summed up), else refuses.  0 done or interrupted; -1 and an error: wrong
 * options, no data, no memory, full disk, loss not finite (the last checkpoint is kept). */
int train_run(const Options *options, RunSummary *summary);

#endif
