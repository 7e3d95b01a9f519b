/* Device and pinned memory under SIMT: ordinary memory whose kind and bounds are remembered. */
#ifndef SIMT_MEMORY_H
#define SIMT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

typedef enum { MEMORY_DEVICE, MEMORY_PINNED } MemoryKind;

/* Aligned to 256 bytes, device memory filled with NaN.  NULL and an error. */
void *memory_alloc(MemoryKind kind, size_t bytes);
/* Freeing what is not there is an error that device_wait tells.  NULL is ignored. */
void memory_free(MemoryKind kind, void *memory);
/* Whether these bytes lie in one piece of memory of this kind. */
bool memory_holds(MemoryKind kind, const void *memory, size_t bytes);

#endif
