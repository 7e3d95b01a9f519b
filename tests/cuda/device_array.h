/* Arrays on the device, for tests. */
#pragma once

#include "../../cuda/kernels.h"

/* Returns the stream that all tests use.  Where there is no device it returns NULL, and the running
 * case fails. */
Stream device_test_stream(void);
/* Waits for the stream; the running case fails if the device reports an error. */
void device_test_wait(void);

/* Copy bytes to new device memory, which device_free frees, and back to the host. The program ends
 * when memory runs out. */
void *device_put(const void *host, size_t bytes);
void device_get(void *host, const void *device, size_t bytes);

/* Rounds to the nearest bf16, ties to even; NaN stays NaN. */
float nearest_bf16(float x);
/* Convert numbers to what a device stores, bf16 or float, and back. */
void put_numbers(unsigned char *to, const float *from, size_t count, bool bf16);
void get_numbers(float *to, const unsigned char *from, size_t count, bool bf16);
/* Do the same with new device memory, in the value type of a precision. */
void *device_put_values(const float *host, size_t count, Precision precision);
void device_get_values(float *host, const void *device, size_t count, Precision precision);
