/* What the files of gpu/ share of device.c. */
#pragma once

#include <cuda_runtime_api.h>

#include "../device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Remembers the first launch that failed, for device_wait to report. */
void device_note_launch(cudaError_t error, const char *kernel, const char *file, int line);
/* Returns true while the stream is captured, also into a capture that has failed. */
bool device_captures(Stream stream);
/* Waits for the stream, unless it is captured.  Returns false, and notes the error, if the device
 * has failed. */
bool device_is_sound(Stream stream);
/* Returns the major compute capability of the thread's device; 0 if it cannot be asked. */
int device_capability(void);

#ifdef __cplusplus
}
#endif
