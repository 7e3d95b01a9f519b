/* Loss and accuracy over a data set. */
#ifndef EXPERIMENTS_EVAL_H
#define EXPERIMENTS_EVAL_H

#include "setup.h"

typedef struct {
    double loss;       /* nats per target */
    double accuracy;   /* 0..1 */
    double perplexity; /* exp(loss) */
} Evaluation;

/* Forward over the whole data set, in order.  -1 and an error. */
int eval_dataset(const Setup *setup, const Dataset *data, Evaluation *evaluation);

/* "loss 1.234, accuracy 56.7 %", or for language models "loss 3.456, perplexity 31.7". */
const char *eval_format(const Evaluation *evaluation, bool tokens, char text[80]);

#endif
