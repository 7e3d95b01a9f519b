/* `bcd train` as a function, and the evaluation of a model. */
#pragma once

#include "../store/runfile.h"
#include "setup.h"

/* Runs the forward pass over the whole data set, in order, and overwrites the row's loss (nats per
 * target), accuracy (0..1) and perplexity (exp(loss)).  Returns 1, with the row as it was, once
 * `stop`, unless NULL, returns non-zero.  -1 and an error. */
int eval_dataset(EvaluationRow *row, const Setup *setup, const Dataset *data, int (*stop)(void));

/* Checks that the data are those which the run in the file `path` was evaluated on.  -1 and an
 * error. */
int eval_check_samples(const RunFile *run, const char *path, const Dataset *data);

/* "loss 1.234, accuracy 56.7 %", or for language models "loss 3.456, perplexity 31.7". */
Text eval_format(const EvaluationRow *row, bool tokens);

/* Takes the settings of the run in options->like, except for the flags given.  -1 and an error. */
int train_like(Options *options);

/* Trains into options->out, which must not hold a run yet (a new directory under runs/ if that is
 * empty), or resumes the run in options->resume; of a finished one it only writes the files again.
 * Takes over options->world.  Returns 0 when the training is done, or 1 if a signal stopped it and
 * the checkpoint is written; -1 and an error: wrong options, no data, no memory, full disk, or a
 * loss that is not finite (the last checkpoint is kept). */
int train_run(const Options *options);
