/* Stand-ins, over the SIMT layer, for what cuda/gpu/ uses of the CUDA runtime (cudart*.c) and of
 * cuBLASLt (cublaslt.c). They have the interfaces of NVIDIA's headers, so tests run cuda/gpu/
 * itself without a GPU. What NVIDIA's documentation forbids is refused with the status that it
 * names. Streams are late (cuda/simt/late.h), as those of a GPU are. */
#pragma once

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

/* What a test may change. cuBLASLt's stand-in reads the environment instead: with FAKE_LT_REFUSES=n
 * the first n of its algorithms are not supported when they are to run, with FAKE_LT_BREAKS=n they
 * have an internal error, with FAKE_LT_FAILS=n running them fails, and with FAKE_LT_NO_CAPTURE=1
 * none can be captured. With FAKE_LT_TRAP="M N K WHAT" a product of this shape, with a WHAT of
 * "lost", loses the device, with "abort" ends the process, with "hang" does not end, and with
 * "fails" fails. */
typedef struct {
    int driver; /* the CUDA version that the driver supports, 13000; 0: there is no driver */
    int devices;
    int capability;      /* the default is 90 */
    size_t memory_bytes; /* of each device */
    bool without_graphs; /* a capture cannot be made a graph */
} FakeGpu;
extern FakeGpu fake_gpu;

/* Returns true if these bytes are allocated memory of this device. */
bool fake_holds(int device, const void *memory, size_t bytes);
/* Notes an error of work on the device: the next wait reports it as an illegal address. */
void fake_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Makes every later wait and allocation report a fault, as after one of a GPU's, or no longer. */
void fake_lose(bool lost);
