/* What is computed from the curves of trainings: steps to convergence and the B-F multiplier, a
 * training's own convergence, operations. */
#pragma once

#include "study.h"

/* The rule of study_converge in words, as it is stored in the file of a study. */
extern const char study_convergence_rule[];

/* Fills train_loss and plateau_steps ... end_spread of all rows; and level, steps_to_converge,
 * epochs_to_converge, multiplier, and the same by validation loss, of every BCD row that has a full
 * update to compare it with (cases.h).  A full update has multiplier 1 and no level; it reached the
 * level of a BCD row after that row's steps_to_converge / multiplier updates. */
void study_converge(Study *study);

/* ---- a training's own convergence ------------------------------------------------------------ */

/* The rule of early stopping.  The first mean of PLATEAU_MEAN evaluations is the best so far; a
 * later one replaces it when it is better by more than PLATEAU_POINTS points of accuracy (images)
 * or PLATEAU_NATS (text).  The training has converged at the best that none replaces within
 * PLATEAU_IMAGE_EPOCHS or PLATEAU_TOKEN_EPOCHS.  The paper states no rule. */
#define PLATEAU_MEAN 5
#define PLATEAU_POINTS 0.5
#define PLATEAU_IMAGE_EPOCHS 10
#define PLATEAU_NATS 0.01
#define PLATEAU_TOKEN_EPOCHS 1
#define PLATEAU_TEXT(number) PLATEAU_TEXT_OF(number) /* PLATEAU_TEXT(PLATEAU_MEAN): "5" */
#define PLATEAU_TEXT_OF(value) #value
/* The rule in words. */
#define PLATEAU_RULE \
    "the best mean of " PLATEAU_TEXT(PLATEAU_MEAN)                                        \
    " evaluations, once none within the next " PLATEAU_TEXT(PLATEAU_IMAGE_EPOCHS)         \
    " epochs (images) or " PLATEAU_TEXT(PLATEAU_TOKEN_EPOCHS)                             \
    " epoch (text) is a new best; a new best is one that is better by more than "         \
    PLATEAU_TEXT(PLATEAU_POINTS) " points of accuracy, or " PLATEAU_TEXT(PLATEAU_NATS)    \
    " nats"

/* Applies that rule to a row's evaluations, with `amount` for a new best and `patience` in epochs:
 * returns the number of the last evaluation of the best mean.  Returns -1 when there is none, or
 * the training ended too early to know. */
int plateau_find(const StudyRow *row, double amount, double patience);

/* Fills plateau_steps ... end_spread of a row from its evaluations. */
void plateau_fill(StudyRow *row);

/* Returns the mean score (accuracy in per cent, or perplexity) of the last PLATEAU_MEAN evaluations
 * up to an update, and in *spread, unless NULL, their standard deviation; NAN for fewer. */
double plateau_score(const StudyRow *row, double updates, double *spread);

/* Returns the updates of a BCD training over those of a full update until both had the same mean
 * validation loss of PLATEAU_MEAN evaluations: the higher of the two lowest means.  Means, because
 * the lowest of many single evaluations is the luckiest one.  NAN when one of them has no such mean
 * or had that loss in its first one. */
double plateau_multiplier(const StudyRow *row, const StudyRow *full);

/* ---- operations.c ---------------------------------------------------------------------------- */

/* Fills row->operations from the row's model, submodels and batch; it is NULL when one of these
 * cannot be interpreted, and tables leave those cells empty. */
void study_operations(StudyRow *row);
