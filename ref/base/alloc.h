/* An allocator that counts what memory is used for.
 *
 * The point of BCD is to save memory, so every array of a stage is allocated under a role, and the
 * current and peak bytes of each role are counted.  memory.h computes the same numbers from the
 * shapes alone, and the tests compare the two. */
#pragma once

#include <stddef.h>

typedef enum {
    MEM_PARAMETERS,  /* weights and biases of every block, active or frozen */
    MEM_BUFFERS,     /* running statistics of batch norm, and those from before the step */
    MEM_GRADIENTS,   /* of the parameters that train */
    MEM_STATE,       /* optimizer state: momentum, or Adam's two moments */
    MEM_ACTIVATIONS, /* what the forward pass keeps for the backward pass */
    MEM_CACHE,     /* outputs of the frozen prefix, computed once (pre-inference); or, where a model
                    * generates, the inputs of attentions (a KV cache) */
    MEM_WORKSPACE, /* what is not kept beyond one block's forward or backward pass */
    MEM_ROLES
} MemRole;

/* Rounds up to a multiple of 256 bytes.  Pieces of the workspace and of a device's memory start at
 * such multiples, so that every kernel may use its widest accesses. */
static inline size_t align_bytes(size_t bytes) { return (bytes + 255) / 256 * 256; }
static inline size_t size_max(size_t a, size_t b) { return a > b ? a : b; }

extern const char *const mem_role_names[MEM_ROLES];

typedef struct {
    size_t current[MEM_ROLES], peak[MEM_ROLES]; /* bytes as requested, without padding */
    size_t total_current, total_peak;
} MemCount;

/* Returns `count` elements of `size` bytes each, zeroed, aligned to 64 bytes, and counts them under
 * `role`.  count 0 gives a valid pointer to nothing.  NULL and an error when the product overflows
 * or memory runs out. */
void *mem_alloc(MemCount *counted, MemRole role, size_t count, size_t size);

/* Frees what mem_alloc returned, and uncounts it.  NULL is ignored. */
void mem_free(MemCount *counted, void *pointer);

/* Count memory that was allocated elsewhere, for example on a device. */
void mem_count(MemCount *counted, MemRole role, size_t bytes);
void mem_uncount(MemCount *counted, MemRole role, size_t bytes);
