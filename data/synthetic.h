/* Generated images, so that a network can be trained without any download.
 *
 * There are ten classes, each with a silhouette (disc, ring, square, ...).  The object varies in
 * position, size, rotation and colour, lies on a shaded background among smaller shapes that may
 * cover it in part, and has noise, so that a small network learns the classes but not perfectly.
 * Images are made by integer arithmetic from counter-based random numbers: the bytes are the same
 * on any machine and any number of threads. */
#pragma once

#include "data.h"
#include "images.h"

enum { SYNTHETIC_CLASSES = 10, SYNTHETIC_TRAIN = 10000, SYNTHETIC_TEST = 2000 };

extern const Normalisation synthetic_normalisation;

/* Makes `samples` images in the layout of CIFAR-10, of each class in turn.  Splits never share an
 * image.  Sets images->records, for the caller to free.  -1 and an error when memory runs out. */
int synthetic_generate(Images *images, int samples, Split split, uint64_t seed);
