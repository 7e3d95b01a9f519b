/* The prefix cache (pre-inference, section 3.2.2 of the paper): outputs of the frozen blocks below
 * the active submodel, by sample number.  Filled as samples come by for the first time, so a phase
 * shorter than an epoch computes no more than it uses.  Kept in the device's memory as far as the
 * stage has room, then in host memory up to a byte budget, the rest in a file that has no name any
 * more once open, so that nothing is left behind. */
#ifndef REF_PREFIX_CACHE_H
#define REF_PREFIX_CACHE_H

#include "alloc.h"
#include "real.h"

typedef struct {
    MemCount *counted;   /* CACHE bytes are counted here */
    size_t budget_bytes; /* in memory */
    const char *dir;     /* for the file; NULL: samples beyond the budget are not kept */
    int samples;         /* in the data set */
    size_t width;        /* numbers per sample */
    int *slot;           /* [samples]: where a sample is kept, -1: not yet */
    int used;            /* slots taken */
    int on_device;       /* slots below this are the stage's business */
    int in_memory;       /* slots below this, and not on the device, are in memory */
    real **chunk;        /* memory, CHUNK slots at a time */
    int chunks, file;    /* file descriptor, -1: none */
} PrefixCache;

/* An empty cache.  -1 and an error when memory runs out. */
int prefix_cache_init(PrefixCache *cache, MemCount *counted, size_t budget_bytes, const char *dir,
                      int samples);
void prefix_cache_free(PrefixCache *cache);

/* Forgets everything; from now on `width` numbers per sample, the first on_device samples in the
 * device's own memory. */
void prefix_cache_clear(PrefixCache *cache, size_t width, int on_device);

/* Overwrites values[n][width], but for samples on the device, if all n samples are kept; returns
 * whether they were, or -1. */
int prefix_cache_get(PrefixCache *cache, real *values, const int *ids, int n);

/* Keeps values[n][width] of samples not kept yet, but for those with a place on the device: the
 * caller puts them into device_slots[n] (-1: nothing to do), and values of theirs are not read.  -1
 * and an error when the file cannot grow. */
int prefix_cache_put(PrefixCache *cache, const real *values, const int *ids, int n,
                     int *device_slots);
/* Whether prefix_cache_put may read values of n more samples. */
bool prefix_cache_reads(const PrefixCache *cache, int n);

#endif
