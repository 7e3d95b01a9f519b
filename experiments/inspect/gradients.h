/* `bcd gradients`: what one batch gives, number by number, to be compared with another framework.
 * All files are HDF5; C order; the names and layouts of parameters are those of `bcd info --model`
 * and ref/model.h.
 *
 * --checkpoint FILE   checkpoint.h5 of a run, or any file with
 *   /            attribute   model: a specification, e.g. "gpt:layers=2,width=12,heads=3,..."
 *   /parameters/NAME         every trained tensor
 *   /buffers/NAME            running statistics of batch norm; not needed
 *
 * --init DIR, in its place: a model in Hugging Face's format.
 *
 * --batch FILE
 *   /images      [n][height][width][channel], or
 *   /tokens      [n][token] whole numbers
 *   /targets     [n] or [n][token] whole numbers; negative: does not count
 *
 * --out FILE
 *   /            attributes  format "bcd gradients", version 1, model, mode: train or eval
 *   /loss        [1]         mean over the targets that count, nats
 *   /logits      [n][class] or [n][token][class]
 *   /activations/BLOCK       output of each block: [n][height][width][channel] or
 *                            [n][token][channel]; of the head as /logits
 *   /gradients/NAME          of the mean loss, of every parameter; with --mode train
 *   /buffers/NAME            running statistics, where the model has any; after the batch
 *   /provenance  attributes  as in run.h5
 *
 * --mode train: every block is active; batch norm uses the statistics of the batch and moves the
 * running ones.  --mode eval: no block is active; batch norm uses the running statistics. */
#ifndef EXPERIMENTS_GRADIENTS_H
#define EXPERIMENTS_GRADIENTS_H

#include "../../ref/stage.h"
#include "../cli/options.h"
#include "../store/h5.h"

/* Model and parameters from a file of the first kind, on the device and in the precision of the
 * options.  NULL and an error; the model belongs to the caller, and outlives the stage. */
Stage *gradients_stage(const Options *options, const char *checkpoint, int batch, Model **model);

/* Reads the second kind.  -1 and an error: missing, other shapes than the model's, a number that is
 * no token or class. */
int gradients_batch(Batch *batch, const H5File *file, const Model *model);

/* Forward and, to train, backward; writes the third kind. */
int gradients_write(const Options *options, const char *path, Stage *stage, const Batch *batch);

#endif
