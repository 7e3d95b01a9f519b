/* Working memory of the ops, one set per thread: a parallel region asks for its own and needs no
 * allocation, no freeing and no failure path of its own. */
#ifndef REF_FAST_SCRATCH_H
#define REF_FAST_SCRATCH_H

#include "../real.h"

/* What a buffer is for.  An op and an op it calls must not share one. */
typedef enum {
    SCRATCH_PACK_A,
    SCRATCH_PACK_B,
    SCRATCH_WEIGHT,
    SCRATCH_ROPE,
    SCRATCH_IMAGE,
    SCRATCH_IMAGE_GRADIENT,
    SCRATCH_PARTIAL,
    SCRATCH_SLOTS
} ScratchSlot;

/* At least `count` numbers, aligned to 64 bytes, with any contents.  They are the calling thread's
 * until it asks for the same slot again, and freed when it ends.  Never NULL: an
 * op has no way to fail, so when memory runs out the process says so in a line and ends with
 * status 1. */
real *scratch(ScratchSlot slot, size_t count);

#endif
