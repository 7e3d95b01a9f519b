/* What the kernels of the optimizer step share. */
#pragma once

#include "../update.h"
#include "common.cuh"

/* Returns true if the step must not change anything: the gradients' norm or the loss is not finite.
 */
static DEVICE bool is_refused(const UpdatePlan &plan, const LossSums *sums) {
    return plan.numbers->refused || (sums && !is_finite(sums->loss_sum));
}
