/* Where the parameters of some blocks lie in one array: in order, each aligned as arenas want it,
 * those of a block next to each other, so that a block moves in one copy. */
#ifndef CUDA_PLACES_H
#define CUDA_PLACES_H

#include "../ref/model.h"

typedef struct {
    size_t *param;           /* [params]: offset in bytes; of absent blocks: SIZE_MAX */
    size_t *block;           /* [blocks + 1]: block b lies from block[b] to block[b + 1] */
    size_t bytes, requested; /* of the array, and without the gaps */
} Places;

/* Numbers of `size` bytes; blocks with active[b], or all with NULL.  -1 and an error when memory
 * runs out. */
int places_make(Places *places, const Model *model, size_t size, const bool *active);
void places_free(Places *places);

#endif
