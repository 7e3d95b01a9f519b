/* Shared by the files of the HDF5 layer. */
#pragma once

#include <hdf5.h>
#include <hdf5_hl.h>

#include "h5.h"

/* Sets the error "FILE: OBJECT: WHAT" of a read; returns -1. */
int h5_refuse(const H5File *file, const char *object, const char *what);

/* Returns the HDF5 type of a kind in memory, which the caller closes with H5Tclose. */
hid_t h5_memory_type(H5Kind kind);
/* Creates the groups above `object`.  Returns false if a write has failed. */
bool h5_make_groups(H5File *file, const char *object);
