/* Working memory of the ops.  Each thread has its own, so that a parallel region need not allocate,
 * free, or handle a failure. */
#pragma once

#include "../base/real.h"

/* The use of a buffer.  An op must not use the same one as an op that it calls. */
typedef enum {
    SCRATCH_PACK_A,
    SCRATCH_PACK_B,
    SCRATCH_WEIGHT,
    SCRATCH_ROPE,
    SCRATCH_ROTATED,
    SCRATCH_ROTATED_GRADIENT,
    SCRATCH_IMAGE,
    SCRATCH_IMAGE_GRADIENT,
    SCRATCH_PARTIAL,
    SCRATCH_SUMS,
    SCRATCH_SLOTS
} ScratchSlot;

/* Returns at least `count` numbers, aligned to 64 bytes, with any contents.  They belong to the
 * calling thread until it asks for the same slot again, and are freed when it ends.  Never NULL: an
 * op cannot fail, so when memory runs out the process prints a line and exits with status 1. */
real *scratch(ScratchSlot slot, size_t count);
