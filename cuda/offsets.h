/* Where the parameters of some blocks lie in one array.  They are in order and aligned as in an
 * arena; those of a block are next to each other, so that a block moves in one copy.  On a stage of
 * a pipeline, copies of tied parameters whose own block is on another stage come last. */
#ifndef CUDA_OFFSETS_H
#define CUDA_OFFSETS_H

#include "../ref/layout.h"

typedef struct {
    size_t *param;           /* [params]: offset in bytes; of absent ones: SIZE_MAX */
    size_t *block;           /* [blocks + 1]: block b lies from block[b] to block[b + 1] */
    size_t bytes, requested; /* of the array, and without the gaps */
    size_t own_requested;    /* without the copies, which begin at block[blocks] */
} ParamOffsets;

/* Computes offsets for numbers of `size` bytes: of the parameters on this stage or, unless `active`
 * is NULL, of those whose block b is active[b].  Returns -1, with an error, when memory runs out.
 */
int param_offsets_create(ParamOffsets *offsets, const Model *model, const StageSettings *settings,
                         size_t size, const bool *active);
void param_offsets_destroy(ParamOffsets *offsets);

#endif
