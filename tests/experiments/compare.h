/* Lists and changes what files hold, and compares the checkpoints of two trainings. */
#pragma once

#include "../../experiments/store/h5.h"

/* Returns how many data sets and groups a group holds, and the name of one, in any order; -1 and an
 * error. */
int h5_count(const H5File *file, const char *group);
int h5_name(const H5File *file, const char *group, int index, char name[H5_NAME]);

/* Checks two checkpoints that were trained on from a third; all names are in the scratch
 * directory.  CHECKs that they hold the same tensors under the same names, and that each pair of
 * arrays differs by at most `tolerance` of the distance that the first has moved from the third
 * (from zero where the third does not have it).  An array that did not move, and with tolerance 0
 * every array, must be the same to the bit. */
void compare_checkpoints(const char *a, const char *b, const char *start, double tolerance);

/* Changes the batch among the settings of a file in the scratch directory, and nothing else. */
void change_batch(const char *name, uint64_t batch);
