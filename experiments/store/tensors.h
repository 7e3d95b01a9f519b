/* The tensors of a model as files name them. */
#pragma once

#include "../../ref/engine.h"
#include "h5.h"

/* How many tensors of a role there are. */
int tensor_count(const Model *model, TensorRole role);
/* The name of a buffer, or of a parameter (which is also that of its gradient and its state). */
const char *tensor_name(const Model *model, TensorRole role, int number);
/* Overwrites dims with the shape and the names of the dimensions; returns the rank. */
int tensor_shape(H5Dim dims[4], const Model *model, TensorRole role, int number);
/* Writes the tensors of a role as data sets GROUP/NAME, except those that the engine does not hold
 * at the moment.  -1 and an error; or, with `finite`, TENSORS_NOT_FINITE and an error if a tensor
 * holds a NaN or an infinity. */
enum { TENSORS_NOT_FINITE = -2 };
int tensors_write(H5File *file, const char *group, Engine *engine, TensorRole role, bool finite);
/* Elements of the largest tensor, at least 1. */
size_t tensor_largest(const Model *model);
