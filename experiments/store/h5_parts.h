/* What the files of the HDF5 layer share among themselves. */
#ifndef EXPERIMENTS_H5_PARTS_H
#define EXPERIMENTS_H5_PARTS_H

#include <hdf5.h>
#include <hdf5_hl.h>

#include "h5.h"

/* Reading: what is wrong with which object.  Returns -1. */
int h5_refuse(const H5File *file, const char *object, const char *what);

/* The HDF5 type in memory; to be closed with H5Tclose. */
hid_t h5_memory_type(H5Kind kind);
bool h5_ready(H5File *file, const char *object); /* creates the groups above `object`; !failed */

#endif
