/* How far a training on a device may be from the oracle's.
 *
 * A network magnifies rounding errors (in normalisations, at kinks, where Adam divides by a small
 * root), and no formula says by how much. So the tests measure it, on the oracle alone: they repeat
 * its training from weights that each differ by one rounding of the device's precision. A correct
 * device rounds about four times for each such change: weights, values, their gradients, products.
 * Its result is therefore off by sqrt(4) = 2 times as much, and by another factor of 4 for the
 * worst of a hundred tensors, since only eight samples are measured. A mistake changes the result
 * by as much as the training itself does: some hundred times more in fp32. */
#pragma once

#include "../ref/tiny.h"

#define DRIFT_FACTOR 8.0

/* All numbers of a role, tensor after tensor. Tensors that do not exist are left out. */
typedef struct {
    int tensors;
    size_t *begin; /* [tensors + 1] */
    real *number;
} Snapshot;
Snapshot snapshot_take(const Tiny *tiny, TensorRole role);
void snapshot_free(Snapshot *snapshot);
/* CHECKs that the tensors of a role are the same to the last bit. */
void snapshot_check_same(const Tiny *a, const Tiny *b, TensorRole role, const char *what);

/* Returns the rounding error of a number: half a unit in the last place. In tf32 it is a whole
 * unit, since the library's products may cut it off (accuracy.c). */
double unit_roundoff(Precision precision);

/* CHECKs that the training of this recipe changes every parameter as the oracle's does, and that
 * the losses on the way agree too. */
void drift_check_training(const Recipe *recipe, const char *what);

/* CHECKs the gradients of all parameters for one batch, layer by layer, with the whole model
 * active. */
void drift_check_gradients(const Recipe *recipe);
