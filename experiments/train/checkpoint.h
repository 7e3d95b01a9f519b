/* checkpoint.h5: everything needed to continue a training, and nothing that differs between two
 * runs of the same training: no clock, no number of threads.  experiments/results/README.md lists
 * its data sets. */
#pragma once

#include "../store/h5.h"
#include "setup.h"

/* Writes the engine's tensors and the state of the training.  -1 and an error of the file; or
 * TENSORS_UNREAD or TENSORS_NOT_FINITE (tensors.h) and an error.  The old file is then unchanged.
 */
int checkpoint_write(const char *path, const Setup *setup, const BcdState *state);

/* Opens the file and checks its format and precision.  -1 and an error. */
int checkpoint_open(H5File *file, const char *path);

/* Checks that the data are those of a checkpoint's training.  -1 and an error. */
int checkpoint_check_data(const H5File *file, const Dataset *data);

/* Reads all of it into a fresh engine, and setup->init.  Refuses another model, other data, another
 * precision, and damage: -1 and an error. */
int checkpoint_resume(const char *path, Setup *setup, BcdState *state);

/* Reads setup->init, which stays if the file has none.  -1 and an error. */
int checkpoint_read_init(const H5File *file, Setup *setup);

/* Reads parameters and running statistics into an engine.  With `foreign` the file was written by
 * another program, and running statistics may be missing.  -1 and an error. */
int checkpoint_read_model(const H5File *file, Engine *engine, bool foreign);
