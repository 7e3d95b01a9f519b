/* Generated images, so that the main job has something worth learning without any download.
 *
 * Ten classes, one silhouette each (disc, ring, square, ...).  The object varies in place, size,
 * rotation and colour, stands before a shaded background among smaller pieces of clutter, may be
 * partly covered, and is noisy: a small network learns it, but not perfectly.  Integer arithmetic
 * on counter-based random numbers: the same bytes on any machine and any number of threads. */
#ifndef DATA_SYNTHETIC_H
#define DATA_SYNTHETIC_H

#include "images.h"
#include "request.h"

enum { SYNTHETIC_CLASSES = 10, SYNTHETIC_TRAIN = 10000, SYNTHETIC_TEST = 2000 };

extern const Normalisation synthetic_normalisation;

/* Overwrites images with `samples` records in the CIFAR-10 layout, classes in turn.  Splits never
 * share an image.  -1 and an error if memory runs out. */
int synthetic_generate(Images *images, int samples, Split split, uint64_t seed);

#endif
