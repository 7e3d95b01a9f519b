/* Arrays on the device that may be too large for the host, which knows each of their numbers all
 * the same: an array repeats a pool of random numbers. */
#pragma once

#include "../../cuda/kernels.h"

/* Returns number i of array `which`, in (-1, 1), as it is stored in the value type. */
float pool_number(int which, size_t i, Precision type);

/* Return new device memory; the program ends when there is none.  pool_put: the numbers of array
 * `which`, in rows of `width` numbers that start `stride` apart; what lies between them is NaN.
 * pool_put_nan: NaN, of bytes 0xff. */
void *pool_put(int which, size_t rows, size_t width, size_t stride, Precision type);
void *pool_put_nan(size_t count, Precision type);

/* Returns number i of an array on the device. */
float pool_read(const void *device, size_t i, Precision type);
/* Returns |a - b| / |b| (Euclidean norms) of two arrays on the device, laid out as above; NaN if
 * either has a NaN. */
double pool_apart(const void *a, const void *b, size_t rows, size_t width, size_t stride,
                  Precision type);
