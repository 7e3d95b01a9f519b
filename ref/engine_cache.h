/* The prefix cache of the engine of one device: moves outputs between the stage and the cache. */
#pragma once

#include "engine.h"
#include "prefix_cache.h"

typedef struct {
    PrefixCache kept;
    Stage *stage;
    size_t device_bytes;
    int lowest;    /* the frozen prefix is blocks 0 .. lowest - 1; -1: not known yet */
    MemCount host; /* counts host memory where a device counts only its own; in no plan or peak, but
                    * an error for want of memory says it */
    real *values;  /* [batch][kept.width]: outputs of the prefix, on their way to or from host
                    * memory; NULL without a prefix */
    int *slots;    /* [batch]: slots in the device's memory; -1: not there */
} EngineCache;

/* Returns an empty cache, to be freed before the stage; NULL and an error when memory runs out or
 * the cache would not be exact. */
EngineCache *engine_cache_create(Stage *stage, const EngineSettings *settings, const Dataset *data);
void engine_cache_free(EngineCache *cache); /* may be NULL */

/* Frees the device memory of the cache unless `lowest`, the lowest active block, is as before; then
 * the stage has room to activate, after which engine_cache_reserve empties the rest of the cache
 * for the new prefix.  -1 and an error when memory runs out. */
void engine_cache_release(EngineCache *cache, int lowest);
int engine_cache_reserve(EngineCache *cache, int lowest);

/* load and store come after stage_begin, and need a prefix: lowest > 0.
 *
 * Copies the prefix's outputs of a batch into the stage.  Returns 1, or 0 if not all samples are
 * kept; -1 and an error if the file or the device fails. */
int engine_cache_load(EngineCache *cache, const Batch *batch);

/* Keeps the prefix's outputs of a batch, which the stage has just computed.  -1 and an error. */
int engine_cache_store(EngineCache *cache, const Batch *batch);

/* Returns -1 and an error if cached outputs of the prefix would not be exact, because the prefix
 * computes something else each time, or if there is no data set to cache (samples < 1). */
int engine_check_cache(const Stage *stage, int samples, bool augmented);
