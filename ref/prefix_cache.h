/* The prefix cache (pre-inference, section 3.2.2 of the paper) keeps the outputs of the frozen
 * blocks below the active submodel, by sample number.  It is filled when a sample is trained on for
 * the first time, so a phase shorter than an epoch computes no more than it uses.  Outputs go into
 * the device's memory as far as the stage has room, then into host memory up to a budget, and the
 * rest into a file.  The file's name is removed as soon as it is open, so that a killed program
 * leaves nothing behind. */
#pragma once

#include "base/alloc.h"
#include "base/real.h"

typedef struct {
    MemCount *counted;   /* counts the host memory, as MEM_CACHE */
    size_t budget_bytes; /* of host memory */
    const char *dir;     /* of the file; NULL: samples beyond the budget are not kept */
    int samples;         /* in the data set */
    size_t width;        /* elements per sample */
    int *slot;           /* [samples]: where a sample is kept; -1: it is not */
    int used;            /* slots taken */
    int on_device;       /* slots below this are in device memory, which the stage manages */
    int memory_end;      /* slots from on_device up to this are in host memory */
    real **chunk;        /* [chunks]: host memory, CHUNK slots each */
    int chunks, file;    /* the file's descriptor; -1: none */
} PrefixCache;

/* Makes an empty cache.  -1 and an error when memory runs out. */
int prefix_cache_init(PrefixCache *cache, MemCount *counted, size_t budget_bytes, const char *dir,
                      int samples);
void prefix_cache_free(PrefixCache *cache);

/* Empties the cache.  From now on samples have `width` elements, and the first on_device samples
 * that are kept are in device memory. */
void prefix_cache_clear(PrefixCache *cache, size_t width, int on_device);

/* Looks up n samples.  Returns 1 if all are kept, and overwrites values[n][width] for those that
 * are not in device memory; 0 if some are not kept; -1 and an error if the file cannot be read. */
int prefix_cache_get(PrefixCache *cache, real *values, const int *ids, int n);

/* Keeps values[n][width] of the samples that are not kept yet.  For those that belong in device
 * memory it sets device_slots[i] to their slot, reads no values, and the caller copies them; it
 * sets the other device_slots to -1.  Without device memory, device_slots may be NULL.  -1 and an
 * error when memory runs out or the file cannot grow. */
int prefix_cache_put(PrefixCache *cache, const real *values, const int *ids, int n,
                     int *device_slots);
/* Returns false if all n samples of the next prefix_cache_put belong in device memory, so that it
 * will not read `values`. */
bool prefix_cache_put_reads(const PrefixCache *cache, int n);
