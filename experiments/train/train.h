/* `bcd train` as a function, and the evaluation of a model. */
#pragma once

#include "../text.h"
#include "setup.h"

typedef struct {
    double loss;       /* nats per target */
    double accuracy;   /* 0..1 */
    double perplexity; /* exp(loss) */
} Evaluation;

/* Runs the forward pass over the whole data set, in order, and overwrites `evaluation`.  -1 and an
 * error. */
int eval_dataset(const Setup *setup, const Dataset *data, Evaluation *evaluation);

/* "loss 1.234, accuracy 56.7 %", or for language models "loss 3.456, perplexity 31.7". */
Text eval_format(const Evaluation *evaluation, bool tokens);

typedef struct {
    bool interrupted;  /* stopped by a signal; the checkpoint is written */
    uint64_t steps;    /* done */
    double seconds;    /* of training; evaluation and saving left out */
    double train_loss; /* mean of the last tenth of an epoch, at least ten steps */
    Evaluation valid;  /* of the validation split, at the end */
    size_t peak_bytes; /* total, as the allocator counted */
} RunSummary;

/* Takes the settings of the run in options->like, except for the flags given.  -1 and an error. */
int train_like(Options *options);

/* Trains into options->out (a new directory under runs/ if that is empty), or resumes the run in
 * options->resume.  If `out` holds a run already, resumes it with options->go_on (a finished one is
 * only summed up), and refuses without.  Takes over options->world.  Returns 0 when the training is
 * done or interrupted; -1 and an error: wrong options, no data, no memory, full disk, or a loss
 * that is not finite (the last checkpoint is kept). */
int train_run(const Options *options, RunSummary *summary);
