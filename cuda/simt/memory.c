#include "memory.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "../../ref/error.h"
#include "engine.h"

typedef struct Piece {
    struct Piece *next;
    MemoryKind kind;
    uintptr_t start;
    size_t bytes;
} Piece;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Piece *pieces;

/* Returns the link to the piece that holds these bytes, or NULL.  With bytes 0 the address must lie
 * in the piece. */
static Piece **find(MemoryKind kind, const void *memory, size_t bytes) {
    uintptr_t at = (uintptr_t)memory;
    for (Piece **p = &pieces; *p; p = &(*p)->next)
        if ((*p)->kind == kind && at >= (*p)->start && at - (*p)->start < (*p)->bytes &&
            bytes <= (*p)->bytes - (at - (*p)->start))
            return p;
    return NULL;
}

void *memory_alloc(MemoryKind kind, size_t bytes) {
    Piece *piece = malloc(sizeof *piece);
    void *memory;
    if (bytes == 0) bytes = 1;
    if (!piece || posix_memalign(&memory, 256, bytes)) {
        free(piece);
        error_set("no memory for %zu bytes", bytes);
        return NULL;
    }
    if (kind == MEMORY_DEVICE) simt_poison(memory, bytes);
    pthread_mutex_lock(&lock);
    *piece = (Piece){pieces, kind, (uintptr_t)memory, bytes};
    pieces = piece;
    pthread_mutex_unlock(&lock);
    return memory;
}

void memory_free(MemoryKind kind, void *memory) {
    if (!memory) return;
    pthread_mutex_lock(&lock);
    Piece **place = find(kind, memory, 0), *piece = place ? *place : NULL;
    if (piece && piece->start == (uintptr_t)memory)
        *place = piece->next;
    else
        piece = NULL;
    pthread_mutex_unlock(&lock);
    if (piece)
        free(memory);
    else
        simt_note_error("%p was freed and is not the start of %s memory", memory,
                        kind == MEMORY_DEVICE ? "device" : "pinned");
    free(piece);
}

bool memory_holds(MemoryKind kind, const void *memory, size_t bytes) {
    pthread_mutex_lock(&lock);
    bool holds = find(kind, memory, bytes) != NULL;
    pthread_mutex_unlock(&lock);
    return holds;
}
