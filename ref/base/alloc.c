#include "alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

const char *const mem_role_names[MEM_ROLES] = {
    "parameters", "buffers", "gradients", "state", "activations", "cache", "workspace",
};

enum { ALIGNMENT = 64 };

/* Stored in the 64 bytes before every array. */
typedef struct {
    size_t bytes;
    MemRole role;
} AllocHeader;

void mem_count(MemCount *counted, MemRole role, size_t bytes) {
    counted->current[role] += bytes;
    counted->total_current += bytes;
    if (counted->current[role] > counted->peak[role]) counted->peak[role] = counted->current[role];
    if (counted->total_current > counted->total_peak) counted->total_peak = counted->total_current;
}

void mem_uncount(MemCount *counted, MemRole role, size_t bytes) {
    counted->current[role] -= bytes;
    counted->total_current -= bytes;
}

void *mem_alloc(MemCount *counted, MemRole role, size_t count, size_t size) {
    if (size && count > (SIZE_MAX - 2 * ALIGNMENT) / size)
        return error_null(
            "memory: %zu elements of %zu bytes for %s are more than an address can hold", count,
            size, mem_role_names[role]);
    size_t bytes = count * size;
    size_t padded = (bytes + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    char *base = aligned_alloc(ALIGNMENT, padded);
    if (!base)
        return error_null(
            "memory: no %zu bytes for %s (%zu bytes in use); use a smaller batch, more "
            "submodels, or recompute",
            bytes, mem_role_names[role], counted->total_current);
    memset(base, 0, padded);
    *(AllocHeader *)(void *)base = (AllocHeader){bytes, role};
    mem_count(counted, role, bytes);
    return base + ALIGNMENT;
}

void mem_free(MemCount *counted, void *pointer) {
    if (!pointer) return;
    char *base = (char *)pointer - ALIGNMENT;
    const AllocHeader *header = (const AllocHeader *)(const void *)base;
    mem_uncount(counted, header->role, header->bytes);
    free(base);
}
