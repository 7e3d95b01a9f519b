/* checkpoint.h5: everything needed to go on, and nothing that differs between two runs of the same
 * training: no clock, no number of threads.
 *
 *   /            attributes  format "bcd checkpoint", version 1, precision "float" or "double"
 *   /settings    attributes  the flags that decide the result, as resolved, and their checksum
 *   /model       attribute   spec, in canonical form
 *   /data        attributes  name, samples, checksum of the training split
 *   /bcd         attributes  step, position, phase, phase_steps, phase_start, submodel,
 *                            window_sum, last_window_sum, windows: see BcdState in bcd.h
 *   /optimizer_step [block]  updates the optimizer state of each block has counted; an earlier
 *                            program called it /age, which is read too
 *   /parameters/NAME         trained tensors, dimensions named; layouts as in model.h
 *   /buffers/NAME            running statistics
 *   /optimizer/first/NAME    momentum, or Adam's first moment; of the tensors that have state now
 *   /optimizer/second/NAME   Adam's second moment
 *
 * Each tensor, /optimizer_step and /bcd have an attribute checksum (FNV-1a over their numbers, see
 * data/checksum.h), by which damage shows. */
#ifndef EXPERIMENTS_CHECKPOINT_H
#define EXPERIMENTS_CHECKPOINT_H

#include "../train/setup.h"
#include "h5.h"

/* Writes the engine's tensors and where the training is.  -1, or NOT_FINITE where a tensor has a
 * number that is NaN or infinite, and an error; the old file is then as it was. */
enum { CHECKPOINT_NOT_FINITE = -2 };
int checkpoint_write(const char *path, const Setup *setup, const BcdState *state);

/* The settings alone, over those in `options` (which must be of COMMAND_TRAIN). */
int checkpoint_settings(const char *path, Options *options);

/* How many updates have been done there.  -1 and an error. */
int checkpoint_step(const char *path, uint64_t *step);

/* All of it, into a fresh engine.  Refuses another model, other data, another precision, damage. */
int checkpoint_resume(const char *path, const Setup *setup, BcdState *state);

/* A trained model, for evaluation: settings, model, stage and engine with the parameters, no data
 * sets.  `place` is a run's directory or a checkpoint file; flags given in `asked` (data directory,
 * batch, limit, threads ...) go over the stored ones.  setup_free is safe either way. */
int checkpoint_open(Setup *setup, const char *place, const Options *asked);

/* What a command that evaluates may say over the settings of a training. */
void checkpoint_overlay(Options *stored, const Options *asked);

/* ---- shared by checkpoint.c, checkpoint_read.c and bcd gradients ----------------------------- */

/* Where each kind of tensor lives in the file. */
typedef struct {
    TensorRole role;
    const char *group;
} CheckpointGroup;
enum { CHECKPOINT_GROUPS = 4 };
extern const CheckpointGroup checkpoint_groups[CHECKPOINT_GROUPS];

enum { CHECKPOINT_MODEL_GROUPS = 2 }; /* the first of them: parameters and buffers */

/* The fields of BcdState. */
enum { CHECKPOINT_FIELDS = 9, CHECKPOINT_VERSION = 1 };
extern const H5Column checkpoint_fields[CHECKPOINT_FIELDS];

/* "/parameters/block1.conv1.weight"; the shape of tensor `number`; how many there are of a role;
 * numbers in the largest. */
void checkpoint_name(char name[2 * H5_NAME], const Model *model, int group, int number);
int checkpoint_shape(H5Dim dims[4], const Model *model, TensorRole role, int number);
int checkpoint_tensors(const Model *model, TensorRole role);
size_t checkpoint_largest(const Model *model);

/* Checksums: of a tensor, of the optimizer steps, of the state. */
uint64_t checkpoint_checksum(const real *data, size_t count);
uint64_t checkpoint_steps_checksum(const uint64_t *steps, size_t blocks);
uint64_t checkpoint_state_checksum(const BcdState *state);

/* Fills the tensors of an engine from the first `groups` of checkpoint_groups.  A file that is no
 * checkpoint may lack checksums and buffers.  -1 and an error. */
int checkpoint_read_tensors(const H5File *file, Engine *engine, int groups, bool foreign);

#endif
