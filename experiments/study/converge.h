/* Steps to convergence and the B-F multiplier, from the curves of training. */
#ifndef EXPERIMENTS_CONVERGE_H
#define EXPERIMENTS_CONVERGE_H

#include "study.h"

/* Goes along a curve: the smoothed loss after each row in turn, the mean over the last `window`
 * ones, fewer at the start. */
typedef struct {
    const CurveRow *curve;
    size_t window, next; /* next: the row that is asked for next */
    double total;
} StudySmooth;
double study_smooth_next(StudySmooth *smooth);

/* The window that two trainings are compared with: a fortieth of the shorter, at least ten updates
 * (or all there are). */
size_t study_window(const StudyRow *a, const StudyRow *b);

/* The mean loss of the last `window` of the first `end` updates; NAN if there are fewer. */
double study_loss(const StudyRow *row, size_t end, size_t window);

/* Fills level, steps_to_converge, epochs_to_converge, multiplier, and the same of the validation
 * loss, of every BCD row that has a full update to compare it with (cases.h), by this rule, which
 * is stored in the file; train_loss and plateau_steps ... end_spread of all.  A full update has
 * multiplier 1 and no level of its own: it was at that of a BCD row after steps_to_converge /
 * multiplier updates.  0, or -1 and an error when memory runs out. */
extern const char study_convergence_rule[];
int study_converge(Study *study);

#endif
