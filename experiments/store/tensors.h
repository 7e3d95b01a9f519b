/* The tensors of a model as files name them. */
#pragma once

#include "../../ref/engine.h"
#include "h5.h"

/* A buffer or a parameter; its gradient and its state have the same name and shape. */
typedef struct {
    const char *name;
    H5Dim dims[4];
    int rank;
    size_t count; /* numbers in all */
} TensorInfo;
TensorInfo tensor_info(const Model *model, TensorRole role, int number);

/* Writes the tensors of a role as data sets GROUP/NAME, except those that the engine does not hold
 * at the moment.  A failure of the file is remembered, and h5_commit returns it.  TENSORS_UNREAD
 * and an error if the engine failed, as when a rank is lost; or, with `finite`, TENSORS_NOT_FINITE
 * and an error if a tensor holds a NaN or an infinity. */
enum { TENSORS_NOT_FINITE = -2, TENSORS_UNREAD = -3 };
int tensors_write(H5File *file, const char *group, Engine *engine, TensorRole role, bool finite);
