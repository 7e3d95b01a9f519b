/* Small colour images held as bytes, turned into normalised numbers when a batch is fetched. */
#ifndef DATA_IMAGES_H
#define DATA_IMAGES_H

#include "../ref/dataset.h"

enum { IMAGE_SIDE = 32, IMAGE_BYTES = 3 * IMAGE_SIDE * IMAGE_SIDE, IMAGE_PAD = 4 };

/* The CIFAR layout: records of label bytes (the last of them is the class), then the red, green and
 * blue planes, row by row. */
typedef struct {
    unsigned char *records; /* [samples][label_bytes + IMAGE_BYTES], owned */
    int samples, label_bytes, classes;
} Images;

/* Mean and standard deviation of each channel of the training set, in units of 255. */
typedef struct {
    double mean[3], deviation[3];
} Normalisation;

/* A data set of the first `limit` images (0: all).  Takes over images->records, also on failure.
 * With augment, each fetch of an image pads it with IMAGE_PAD black pixels on every side, crops
 * 32 x 32 at a random place, and mirrors half of them; which is a function of the seed, the sample
 * and the position alone. */
Dataset *images_dataset(const char *name, Images images, const Normalisation *normalisation,
                        bool augment, uint64_t seed, int limit);

#endif
