#include "block_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/base/checksum.h"
#include "../ref/base/error.h"

/* With more, what is new is computed each time: hundreds of submodels of a large model would take
 * hundreds of megabytes. */
enum { BUCKETS = 1024, ENTRIES = 4096 };

typedef struct Entry {
    struct Entry *next; /* of the same bucket */
    StageSettings settings;
    bool *active;
    BlockCost *cost;
    BlockMemory *bytes;
} Entry;

struct BlockCache {
    pthread_mutex_t mutex;
    size_t blocks;
    int entries;
    Entry *bucket[BUCKETS];
};

BlockCache *block_cache_create(int blocks) {
    BlockCache *cache = calloc(1, sizeof *cache);
    if (!cache) {
        error_set("plan: out of memory");
        return NULL;
    }
    cache->blocks = (size_t)blocks;
    pthread_mutex_init(&cache->mutex, NULL);
    return cache;
}

static void entry_free(Entry *entry) {
    free(entry->active);
    free(entry->cost);
    free(entry->bytes);
    free(entry);
}

void block_cache_free(BlockCache *cache) {
    if (!cache) return;
    for (int i = 0; i < BUCKETS; i++)
        for (Entry *entry = cache->bucket[i], *next; entry; entry = next) {
            next = entry->next;
            entry_free(entry);
        }
    pthread_mutex_destroy(&cache->mutex);
    free(cache);
}

/* Compares the settings in which configurations of a search differ. */
static bool is_same(const StageSettings *a, const StageSettings *b) {
    return a->batch == b->batch && a->recompute == b->recompute && a->deferred == b->deferred &&
           a->precision == b->precision;
}

static size_t bucket_of(const BlockCache *cache, const StageSettings *s, const bool *active) {
    const unsigned first[] = {(unsigned)s->batch, s->recompute, s->deferred, s->precision};
    uint64_t sum = CHECKSUM_START;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) sum = checksum_add(sum, first[i]);
    for (size_t b = 0; b < cache->blocks; b++) sum = checksum_add(sum, active[b]);
    return (size_t)((sum ^ sum >> 32) % BUCKETS);
}

/* Overwrites both with those of an entry.  Returns whether there is one. */
static bool look_up(BlockCache *cache, size_t bucket, BlockCost *cost, BlockMemory *bytes,
                    const StageSettings *settings, const bool *active) {
    pthread_mutex_lock(&cache->mutex);
    const Entry *entry = cache->bucket[bucket];
    while (entry && !(is_same(&entry->settings, settings) &&
                      memcmp(entry->active, active, cache->blocks * sizeof *active) == 0))
        entry = entry->next;
    pthread_mutex_unlock(&cache->mutex);
    if (!entry) return false; /* entries stay as they are until the cache is freed */
    memcpy(cost, entry->cost, cache->blocks * sizeof *cost);
    if (bytes) memcpy(bytes, entry->bytes, cache->blocks * sizeof *bytes);
    return true;
}

/* Remembers an entry, which another thread may have added, too, or frees it. */
static void add(BlockCache *cache, size_t bucket, Entry *entry) {
    pthread_mutex_lock(&cache->mutex);
    const bool has_room = cache->entries < ENTRIES;
    if (has_room) {
        entry->next = cache->bucket[bucket];
        cache->bucket[bucket] = entry;
        cache->entries++;
    }
    pthread_mutex_unlock(&cache->mutex);
    if (!has_room) entry_free(entry);
}

int block_cache_find(BlockCache *cache, BlockCost *cost, BlockMemory *bytes, const Model *model,
                     const StageSettings *settings, const bool *active, const Gpu *gpu,
                     const Efficiency *efficiency) {
    const size_t blocks = (size_t)model->blocks;
    if (!cache)
        return block_costs(cost, model, settings, active, gpu, efficiency) ||
                       (bytes && memory_blocks(bytes, model, settings, active))
                   ? -1
                   : 0;
    const size_t bucket = bucket_of(cache, settings, active);
    if (look_up(cache, bucket, cost, bytes, settings, active)) return 0;
    Entry *entry = calloc(1, sizeof *entry);
    if (!entry) return error_set("plan: out of memory");
    *entry = (Entry){.settings = *settings,
                     .active = malloc(blocks * sizeof *entry->active),
                     .cost = malloc(blocks * sizeof *entry->cost),
                     .bytes = malloc(blocks * sizeof *entry->bytes)};
    int failed = entry->active && entry->cost && entry->bytes
                     ? block_costs(entry->cost, model, settings, active, gpu, efficiency) ||
                           memory_blocks(entry->bytes, model, settings, active)
                     : error_set("plan: out of memory");
    if (failed) {
        entry_free(entry);
        return -1;
    }
    memcpy(entry->active, active, blocks * sizeof *active);
    memcpy(cost, entry->cost, blocks * sizeof *cost);
    if (bytes) memcpy(bytes, entry->bytes, blocks * sizeof *bytes);
    add(cache, bucket, entry);
    return 0;
}
