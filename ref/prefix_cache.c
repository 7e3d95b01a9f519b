#include "prefix_cache.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

enum { CHUNK = 64 }; /* slots per allocation; the last one has no more than can be needed */

int prefix_cache_init(PrefixCache *c, MemCount *counted, size_t budget_bytes, const char *dir,
                      int samples) {
    *c = (PrefixCache){.counted = counted,
                       .budget_bytes = budget_bytes,
                       .dir = dir,
                       .samples = samples,
                       .file = -1};
    c->slot = malloc((size_t)samples * sizeof *c->slot);
    c->chunk = calloc((size_t)samples / CHUNK + 1, sizeof *c->chunk);
    if (c->slot && c->chunk) {
        prefix_cache_clear(c, 1, 0);
        return 0;
    }
    prefix_cache_free(c);
    return error_set("cache: out of memory for an index of %d samples", samples);
}

void prefix_cache_free(PrefixCache *c) {
    if (c->chunk && c->slot) prefix_cache_clear(c, 1, 0);
    free(c->slot);
    free(c->chunk);
    *c = (PrefixCache){.file = -1};
}

void prefix_cache_clear(PrefixCache *c, size_t width, int on_device) {
    for (int i = 0; i < c->chunks; i++) mem_free(c->counted, c->chunk[i]);
    for (int i = 0; i < c->samples; i++) c->slot[i] = -1;
    if (c->file >= 0) close(c->file);
    c->file = -1;
    c->width = width;
    c->chunks = c->used = 0;
    const size_t fitting = c->budget_bytes / (width * sizeof(real));
    c->on_device = on_device;
    c->memory_end = fitting < (size_t)(INT_MAX - on_device) ? on_device + (int)fitting : INT_MAX;
}

/* Returns the slots of the next chunk. */
static size_t chunk_slots(const PrefixCache *c) {
    const int end = c->memory_end < c->samples ? c->memory_end : c->samples;
    const int left = end - c->on_device - c->chunks * CHUNK;
    return (size_t)(left < CHUNK ? left : CHUNK);
}

/* Reads (into) or writes (from) one slot of the file.  Returns 0, or -1 and errno. */
static int transfer(const PrefixCache *c, int slot, real *into, const real *from) {
    size_t bytes = c->width * sizeof(real), done = 0;
    off_t start = (off_t)(slot - c->memory_end) * (off_t)bytes;
    while (done < bytes) {
        off_t at = start + (off_t)done;
        ssize_t moved = into ? pread(c->file, (char *)into + done, bytes - done, at)
                             : pwrite(c->file, (const char *)from + done, bytes - done, at);
        if (moved < 0 && errno == EINTR) continue;
        if (moved == 0) errno = ENOSPC;
        if (moved <= 0) return -1;
        done += (size_t)moved;
    }
    return 0;
}

static real *memory_at(const PrefixCache *c, int slot) {
    int index = slot - c->on_device;
    return c->chunk[index / CHUNK] + (size_t)(index % CHUNK) * c->width;
}

int prefix_cache_get(PrefixCache *c, real *values, const int *ids, int n) {
    for (int i = 0; i < n; i++)
        if (c->slot[ids[i]] < 0) return 0;
    for (int i = 0; i < n; i++) {
        int slot = c->slot[ids[i]];
        real *value = values + (size_t)i * c->width;
        if (slot < c->on_device) continue;
        if (slot < c->memory_end)
            memcpy(value, memory_at(c, slot), c->width * sizeof(real));
        else if (transfer(c, slot, value, NULL))
            return error_set("cache: cannot read back from %s: %s", c->dir, strerror(errno));
    }
    return 1;
}

static int open_file(PrefixCache *c) {
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/prefix-cache-XXXXXX", c->dir);
    if (length < 0 || (size_t)length >= sizeof path)
        return error_set("cache: %.60s...: path too long", c->dir);
    c->file = mkstemp(path);
    if (c->file < 0) return error_set("cache: cannot make %s: %s", path, strerror(errno));
    unlink(path);
    return 0;
}

static int put_one(PrefixCache *c, const real *value, int id) {
    int slot = c->used;
    if (slot >= c->on_device && slot < c->memory_end) {
        if ((slot - c->on_device) / CHUNK == c->chunks) {
            real *chunk = mem_alloc(c->counted, MEM_CACHE, chunk_slots(c) * c->width, sizeof(real));
            if (!chunk) return -1;
            c->chunk[c->chunks++] = chunk;
        }
        memcpy(memory_at(c, slot), value, c->width * sizeof(real));
    } else if (slot >= c->on_device) {
        if (!c->dir) return 0;
        if (c->file < 0 && open_file(c)) return -1;
        if (transfer(c, slot, NULL, value))
            return error_set("cache: cannot write to %s: %s; use a smaller cache or none", c->dir,
                             strerror(errno));
    }
    c->slot[id] = slot;
    c->used++;
    return 0;
}

int prefix_cache_put(PrefixCache *c, const real *values, const int *ids, int n, int *device_slots) {
    for (int i = 0; i < n; i++) {
        const int *slot = &c->slot[ids[i]];
        const bool missing = *slot < 0;
        if (missing && put_one(c, values + (size_t)i * c->width, ids[i])) return -1;
        if (device_slots) device_slots[i] = missing && *slot < c->on_device ? *slot : -1;
    }
    return 0;
}

bool prefix_cache_put_reads(const PrefixCache *c, int n) { return c->used > c->on_device - n; }
