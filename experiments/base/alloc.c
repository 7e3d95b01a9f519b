#include "alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Returns the memory that was asked for.  Uses _exit, because exit handlers must not run while
 * other threads compute, and MPI's would wait for the other ranks. */
static void *checked(void *memory, size_t count, size_t size) {
    if (memory || !count || !size) return memory;
    fprintf(stderr, "bcd: out of memory (%.0f bytes)\n", (double)count * (double)size);
    _exit(1);
}

void *xmalloc(size_t bytes) { return checked(malloc(bytes), bytes, 1); }

void *xcalloc(size_t count, size_t size) { return checked(calloc(count, size), count, size); }

void *xrealloc(void *old, size_t bytes) { return checked(realloc(old, bytes), bytes, 1); }

char *xstrdup(const char *text) { return checked(strdup(text), strlen(text) + 1, 1); }

void alloc_give_back(void) {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}
