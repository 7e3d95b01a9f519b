/* Device and pinned memory under SIMT: ordinary memory whose kind and bounds are remembered. */
#ifndef SIMT_MEMORY_H
#define SIMT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

typedef enum { MEMORY_DEVICE, MEMORY_PINNED } MemoryKind;

/* Returns memory aligned to 256 bytes, device memory filled with NaN; NULL, with an error, when
 * there is none. */
void *memory_alloc(MemoryKind kind, size_t bytes);
/* Freeing memory that is not allocated is an error, which device_wait reports.  NULL is ignored. */
void memory_free(MemoryKind kind, void *memory);
/* Returns true when these bytes lie in one piece of memory of this kind. */
bool memory_holds(MemoryKind kind, const void *memory, size_t bytes);

#endif
