/* Operations of a step, counted from shapes. */
#pragma once

#include "../../ref/model.h"

/* Counts the floating point operations (two for a multiply-add) of a step on one sample: forward
 * from block `first` on (0: of all; those before it are cached), input gradients down to the lowest
 * active parameter, weight gradients of the active blocks and, if correct_factor > 0, of those
 * above them. -1 and an error when memory runs out. */
int model_operations(double *operations, const Model *model, const bool *active, int first,
                     double correct_factor);
