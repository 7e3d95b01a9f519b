/* How far a training on a device may be from the oracle's.
 *
 * Rounding on its way through a network is magnified by what stands in its way (normalisations,
 * kinks, Adam's division by a small root), by how much no formula says.  So it is measured, on the
 * oracle alone: its own training is repeated from weights that are each off by one rounding of the
 * device's precision, which every product then carries on.  A correct device rounds some four times
 * where that moves once: weights, values, their gradients, products.  By sqrt(4) = 2 its result is
 * further out, and by another 4 for the worst of a hundred tensors, of which eight samples are
 * known. A mistake is off by the size of the change itself, some hundred times as much in fp32. */
#pragma once

#include "../ref/tiny.h"

#define DRIFT_FACTOR 8.0

/* All numbers of a role, tensor after tensor; those that do not exist are left out. */
typedef struct {
    int tensors;
    size_t *begin; /* [tensors + 1] */
    real *number;
} Snapshot;
Snapshot snapshot_take(const Tiny *tiny, TensorRole role);
void snapshot_free(Snapshot *snapshot);

/* How far a number is from the one that is meant: half a unit in the last place; in tf32 a whole
 * one, which the library's products may cut off (accuracy.c). */
double unit_roundoff(Precision precision);

/* CHECKs that the training of this recipe changes every parameter as the oracle's does, and the
 * same for the losses on its way. */
void drift_check_training(const Recipe *recipe, const char *what);

/* CHECKs the gradients of all parameters of one batch, layer by layer, the whole model active. */
void drift_check_gradients(const Recipe *recipe);
