/* CIFAR-10 and CIFAR-100, binary versions (Krizhevsky 2009, "Learning Multiple Layers of Features
 * from Tiny Images"). */
#pragma once

#include "data.h"
#include "images.h"

typedef enum { CIFAR_10, CIFAR_100 } CifarKind;

/* Computed from the training sets, and used for both splits. */
extern const Normalisation cifar_normalisation[2];

/* Loads the 50,000 training images, or for validation and test the 10,000 test images.  CIFAR-100
 * has the fine labels.  Sets images->records, for the caller to free.  -1 and an error that names
 * the file. */
int cifar_load(Images *images, CifarKind kind, const char *dir, Split split);

/* Checks that a file's bytes are `samples` records.  -1 and an error that names `path`. */
int cifar_check(const unsigned char *bytes, size_t count, CifarKind kind, int samples,
                const char *path);
