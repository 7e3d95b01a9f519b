/* Small colour images, which are kept as bytes and normalised when a batch is fetched. */
#pragma once

#include "data.h"

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

/* ---- CIFAR-10 and CIFAR-100, binary versions (Krizhevsky 2009, "Learning Multiple Layers of
 * Features from Tiny Images") ---- */

typedef enum { CIFAR_10, CIFAR_100 } CifarKind;

/* Computed from the training sets, and used for both splits. */
extern const Normalisation cifar_normalisation[2];

/* Loads the 50,000 training images, or for validation and test the 10,000 test images.  CIFAR-100
 * has the fine labels.  Sets images->records, for the caller to free.  -1 and an error that names
 * the file. */
int cifar_load(Images *images, CifarKind kind, const char *dir, Split split);

/* cifar10-holdout trains on the first 45,000 training images and validates on the last 5,000, so
 * that settings can be chosen without the test images. */
enum { CIFAR_HELD_OUT = 5000 };

/* Keeps the last `held_out` images, or with `training` all others.  There must be more. */
void images_hold_out(Images *images, int held_out, bool training);

/* Checks that a file's bytes are `samples` records.  -1 and an error that names `path`. */
int cifar_check(const unsigned char *bytes, size_t count, CifarKind kind, int samples,
                const char *path);

/* Generated images, so that a network can be trained without any download.
 *
 * There are ten classes, each with a silhouette (disc, ring, square, ...).  The object varies in
 * position, size, rotation and colour, lies on a shaded background among smaller shapes that may
 * cover it in part, and has noise, so that a small network learns the classes but not perfectly.
 * Images are made by integer arithmetic from counter-based random numbers: the bytes are the same
 * on any machine and any number of threads. */

enum { SYNTHETIC_CLASSES = 10, SYNTHETIC_TRAIN = 10000, SYNTHETIC_TEST = 2000 };

extern const Normalisation synthetic_normalisation;

/* Makes `samples` images in the layout of CIFAR-10, of each class in turn.  Splits never share an
 * image.  Sets images->records, for the caller to free.  -1 and an error when memory runs out. */
int synthetic_generate(Images *images, int samples, Split split, uint64_t seed);
