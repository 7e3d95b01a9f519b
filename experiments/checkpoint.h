/* checkpoint.h5: everything needed to go on, and nothing that differs between two runs of the same
 * training: no clock, no path, no number of threads.
 *
 *   /            attributes  format "bcd checkpoint", version 1, precision "float" or "double"
 *   /settings    attributes  the flags that decide the result, as resolved
 *   /data        attributes  name, samples, checksum of the training split
 *   /bcd         attributes  step, position, visit, visit_steps, visit_start, submodel,
 *                            window_sum, last_window_sum, windows: see BcdState
 *                age [block] updates the optimizer state of each block has seen
 *   /parameters/NAME         trained tensors, dimensions named; layouts as in model.h
 *   /buffers/NAME            running statistics
 *   /optimizer/first/NAME    momentum, or Adam's first moment; of the tensors that have state now
 *   /optimizer/second/NAME   Adam's second moment */
#ifndef EXPERIMENTS_CHECKPOINT_H
#define EXPERIMENTS_CHECKPOINT_H

#include "setup.h"

/* Writes the engine's tensors and where the training is.  -1 and an error; the old file is then as
 * it was. */
int checkpoint_write(const char *path, const Setup *setup, const BcdState *state);

/* The settings alone: into options (as defaults; the rest is left), so that a set-up can be
 * opened. */
int checkpoint_settings(const char *path, Options *options);

/* Parameters and buffers, for evaluation. */
int checkpoint_parameters(const char *path, const Setup *setup);

/* All of it, into a fresh engine.  Refuses another model, data with another checksum, another
 * precision. */
int checkpoint_resume(const char *path, const Setup *setup, BcdState *state);

#endif
