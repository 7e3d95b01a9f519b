/* A GPU that is not there: what cuda/gpu/ uses of the CUDA runtime (cudart*.c) and of cuBLASLt
 * (cublaslt.c), by the interfaces of NVIDIA's headers, over the SIMT layer.  So cuda/gpu/ itself
 * runs in tests.  What NVIDIA's documentation forbids is refused with the status it names.
 *
 * Streams are late (cuda/simt/late.h), as those of a GPU are. */
#ifndef TESTS_FAKE_H
#define TESTS_FAKE_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

/* What a test may change.  cuBLASLt's stand-in is told by the environment: FAKE_LT_REFUSES=n, the
 * first n of its algorithms are not supported when they are asked to run; FAKE_LT_FAILS=1, running
 * fails. */
typedef struct {
    int driver; /* the CUDA version it knows, 13000; 0: there is none */
    int devices;
    int capability;      /* 90 */
    size_t memory_bytes; /* of each device */
} FakeGpu;
extern FakeGpu fake_gpu;

/* Device memory of this device that is there now. */
bool fake_holds(int device, const void *memory, size_t bytes);
/* What went wrong while the device worked: told to who waits next, as an illegal address. */
void fake_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
