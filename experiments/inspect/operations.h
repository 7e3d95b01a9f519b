/* Operations of a step, counted from shapes. */
#pragma once

#include "../../ref/model.h"

/* Counts the floating point operations (two for a multiply-add) of a step on one sample: forward of
 * all blocks, input gradients down to the lowest active parameter, weight gradients of the active
 * blocks and, if correct_factor > 0, of those above them.  A cached prefix is counted as if it were
 * computed.  -1 and an error when memory runs out. */
int model_operations(double *operations, const Model *model, const bool *active,
                     double correct_factor);
