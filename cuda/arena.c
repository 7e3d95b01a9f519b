#include "arena.h"

#include "../ref/error.h"
#include "device.h"

int arena_open(Arena *arena, MemCount *counted, MemRole role, size_t bytes, size_t requested) {
    *arena = (Arena){.role = role};
    if (!bytes) return 0;
    arena->base = device_alloc(bytes);
    if (!arena->base)
        return error_set(
            "memory: the device has no %zu bytes for %s (%zu bytes in use); use a smaller batch, "
            "more submodels, recompute, or bf16",
            bytes, mem_role_names[role], counted->total_current);
    arena->requested = requested;
    mem_count(counted, role, requested);
    return 0;
}

void arena_close(Arena *arena, MemCount *counted) {
    if (!arena->base) return;
    device_free(arena->base);
    mem_uncount(counted, arena->role, arena->requested);
    *arena = (Arena){0};
}
