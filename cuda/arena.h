/* One piece of device memory for all tensors of a role that are allocated and freed together.  A
 * switch of submodel frees and allocates whole pieces, so that memory does not fragment. */
#pragma once

#include "../ref/alloc.h"

typedef struct {
    char *base; /* aligned to 256 bytes */
    MemRole role;
    size_t requested;
} Arena;

/* Allocates `bytes`, gaps between tensors included, and counts `requested`, without them.  Not
 * zeroed.  With bytes 0 the arena is empty.  Returns -1, with an error that names role and bytes,
 * when memory runs out. */
int arena_open(Arena *arena, MemCount *counted, MemRole role, size_t bytes, size_t requested);
/* Frees the arena and subtracts it from `counted`.  The arena is then all zero, and may be closed
 * again. */
void arena_close(Arena *arena, MemCount *counted);
