/* When a training stopped getting better, whatever the others did: "converged", which the paper
 * gives no rule for. */
#ifndef EXPERIMENTS_PLATEAU_H
#define EXPERIMENTS_PLATEAU_H

#include "study.h"

/* The rule, in numbers that its text (study_convergence_rule) repeats: a mean of so many
 * evaluations that is better by more than so many points of accuracy, or nats, within so many
 * epochs. */
#define PLATEAU_MEAN 5
#define PLATEAU_POINTS 0.5
#define PLATEAU_IMAGE_EPOCHS 10
#define PLATEAU_NATS 0.01
#define PLATEAU_TOKEN_EPOCHS 1
#define PLATEAU_TEXT(number) PLATEAU_TEXT_OF(number) /* PLATEAU_TEXT(PLATEAU_MEAN): "5" */
#define PLATEAU_TEXT_OF(value) #value

/* Of n values, less being better, taken at these epochs, in order: the first whose mean, with the
 * PLATEAU_MEAN - 1 before it, no later mean within `patience` epochs betters by more than `amount`.
 * -1: there is none, or the training ended before that could be known. */
int plateau_find(const double *epoch, const double *value, int n, double amount, double patience);

/* Fills plateau_steps ... end_spread of a row from its evaluations.  -1 and an error when memory
 * runs out. */
int plateau_fill(StudyRow *row);

/* Mean score (accuracy in %, or perplexity) of the last PLATEAU_MEAN evaluations up to an update,
 * and their standard deviation, unless NULL; NAN where there are fewer. */
double plateau_score(const StudyRow *row, double updates, double *spread);

#endif
