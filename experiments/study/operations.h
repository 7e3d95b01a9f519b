/* Operations of training steps, counted from shapes. */
#ifndef EXPERIMENTS_OPERATIONS_H
#define EXPERIMENTS_OPERATIONS_H

#include "study.h"

/* Operations (multiply-adds, times two) of a step on one sample: forward everywhere, input
 * gradients down to the lowest active parameter, weight gradients of active ones and with
 * correct_lr of blocks above them.  A prefix whose outputs are kept is counted as if it were
 * computed.  -1 and an error when memory runs out. */
int model_operations(double *operations, const Model *model, const bool *active, double correct_lr);

/* Fills row->operations from what the row says of itself: its model, its submodels, its batch.  -1
 * and an error that says what of it cannot be understood; it is NULL then. */
int study_operations(StudyRow *row);

/* What tables and figures of a study need: study_converge, and the operations of each row.  A model
 * that this program does not know has none, and all that follows does without.  -1 and an error
 * when memory runs out. */
int study_prepare(Study *study);

#endif
