/* Small colour images, which are kept as bytes and normalised when a batch is fetched. */
#pragma once

#include "../ref/dataset.h"

enum { IMAGE_SIDE = 32, IMAGE_BYTES = 3 * IMAGE_SIDE * IMAGE_SIDE, IMAGE_PAD = 4 };

/* The layout of the CIFAR files: a record has label bytes, the last of which is the class, and then
 * the red, green and blue planes, row by row. */
typedef struct {
    unsigned char *records; /* [samples][label_bytes + IMAGE_BYTES] */
    int samples, label_bytes, classes;
} Images;

/* Mean and standard deviation of each channel of the training set, as fractions of 255. */
typedef struct {
    double mean[3], deviation[3];
} Normalisation;

/* Makes a data set of the first `limit` images, or of all if limit is 0.  It frees images.records,
 * also on failure.  With `augment`, each fetch pads the image with IMAGE_PAD black pixels on every
 * side, crops 32 x 32 at a random place, and mirrors it with probability 1/2, as a function of the
 * seed, the sample and the position.  NULL and an error when memory runs out. */
Dataset *images_dataset(const char *name, Images images, const Normalisation *normalisation,
                        bool augment, uint64_t seed, int limit);
