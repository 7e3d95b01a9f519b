/* CIFAR-10 and CIFAR-100, binary versions (Krizhevsky 2009, "Learning Multiple Layers of Features
 * from Tiny Images"). */
#ifndef DATA_CIFAR_H
#define DATA_CIFAR_H

#include "images.h"
#include "request.h"

typedef enum { CIFAR_10, CIFAR_100 } CifarKind;

/* The constants of the training sets, used for both splits. */
extern const Normalisation cifar_normalisation[2];

/* Loads the training split, or the 10,000 test images (validation and test are the same).
 * CIFAR-100: the fine labels.  -1 and an error that names the file. */
int cifar_load(Images *images, CifarKind kind, const char *dir, Split split);

/* Checks one file's bytes, which must be `samples` records.  -1 and an error that names `path`. */
int cifar_check(const unsigned char *bytes, size_t count, CifarKind kind, int samples,
                const char *path);

#endif
