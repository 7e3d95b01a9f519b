#include "scratch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
    real *data[SCRATCH_SLOTS];
    size_t count[SCRATCH_SLOTS];
} ScratchBuffers;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void scratch_free(void *thread_scratch) {
    ScratchBuffers *own = thread_scratch;
    for (int slot = 0; slot < SCRATCH_SLOTS; slot++) free(own->data[slot]);
    free(own);
}

static void create_key(void) {
    if (pthread_key_create(&key, scratch_free)) abort();
}

/* Uses _exit, because exit handlers must not run while other threads are in the middle of an op. */
static void end_without_memory(size_t bytes) {
    fprintf(stderr, "bcd: memory: none left for %zu bytes that an op works in\n", bytes);
    _exit(1);
}

real *scratch(ScratchSlot slot, size_t count) {
    enum { ALIGNMENT = 64 };
    pthread_once(&once, create_key);
    ScratchBuffers *own = pthread_getspecific(key);
    if (!own) {
        own = calloc(1, sizeof *own);
        if (!own || pthread_setspecific(key, own)) end_without_memory(sizeof *own);
    }
    if (own->count[slot] < count) {
        free(own->data[slot]);
        size_t bytes = (count * sizeof(real) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        own->data[slot] = aligned_alloc(ALIGNMENT, bytes);
        if (!own->data[slot]) end_without_memory(bytes);
        own->count[slot] = count;
    }
    return own->data[slot];
}
