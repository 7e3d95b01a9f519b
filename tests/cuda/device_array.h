/* Arrays on the device, for tests. */
#ifndef TESTS_CUDA_DEVICE_ARRAY_H
#define TESTS_CUDA_DEVICE_ARRAY_H

#include "../../cuda/kernels.h"

/* One for all tests.  NULL, and the running case failed, where there is no device. */
Stream device_test_stream(void);
/* Waits; fails the running case with the device's error. */
void device_test_wait(void);

/* A copy of bytes on the device, and back into the host's memory; device_free frees it.  Ends the
 * program when memory runs out: a test cannot go on. */
void *device_put(const void *host, size_t bytes);
void device_get(void *host, const void *device, size_t bytes);

/* To the nearest bf16, ties to even; NaN stays NaN. */
float nearest_bf16(float x);
/* Numbers as a device stores them, bf16 or float. */
void put_numbers(unsigned char *to, const float *from, size_t count, bool bf16);
void get_numbers(float *to, const unsigned char *from, size_t count, bool bf16);
/* The same with device memory: numbers of a precision's value type. */
void *device_put_values(const float *host, size_t count, Precision precision);
void device_get_values(float *host, const void *device, size_t count, Precision precision);

#endif
