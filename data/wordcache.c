#include "wordcache.h"

#include <stdlib.h>
#include <string.h>

#include "../ref/error.h"
#include "checksum.h"

/* These bound the memory to about 24 MB, however long the text is. */
enum { SLOTS = 1 << 18, MAX_WORDS = SLOTS / 2, TEXT_BYTES = 1 << 22, MAX_TOKENS = 1 << 20 };

int wordcache_init(WordCache *cache) {
    *cache = (WordCache){.slot = calloc(SLOTS, sizeof *cache->slot),
                         .text = malloc(TEXT_BYTES),
                         .tokens = malloc(MAX_TOKENS * sizeof *cache->tokens)};
    if (cache->slot && cache->text && cache->tokens) return 0;
    wordcache_free(cache);
    return error_set("gpt2: no memory for the cache of words");
}

void wordcache_free(WordCache *cache) {
    free(cache->slot);
    free(cache->text);
    free(cache->tokens);
    memset(cache, 0, sizeof *cache);
}

static uint32_t hash_word(const char *word, size_t bytes) {
    uint64_t sum = checksum_bytes(CHECKSUM_START, (const unsigned char *)word, bytes);
    return (uint32_t)(sum ^ sum >> 32);
}

/* Returns the slot of a word, or the empty slot where it would be. */
static uint32_t find_slot(const WordCache *cache, const char *word, size_t bytes, uint32_t hash) {
    for (uint32_t at = hash % SLOTS;; at = (at + 1) % SLOTS) {
        const CachedWord *slot = &cache->slot[at];
        if (slot->bytes == 0) return at;
        if (slot->hash == hash && slot->bytes == bytes &&
            memcmp(cache->text + slot->text, word, bytes) == 0)
            return at;
    }
}

const int *wordcache_get(const WordCache *cache, const char *word, size_t bytes, size_t *count) {
    const uint32_t at = find_slot(cache, word, bytes, hash_word(word, bytes));
    *count = cache->slot[at].count;
    return cache->slot[at].bytes ? cache->tokens + cache->slot[at].tokens : NULL;
}

void wordcache_put(WordCache *cache, const char *word, size_t bytes, const int *tokens,
                   size_t count) {
    if (cache->words == MAX_WORDS || cache->text_used + bytes > TEXT_BYTES ||
        cache->tokens_used + count > MAX_TOKENS) {
        memset(cache->slot, 0, SLOTS * sizeof *cache->slot);
        cache->words = cache->text_used = cache->tokens_used = 0;
    }
    const uint32_t hash = hash_word(word, bytes), at = find_slot(cache, word, bytes, hash);
    cache->slot[at] =
        (CachedWord){cache->text_used, cache->tokens_used, hash, (uint16_t)bytes, (uint16_t)count};
    memcpy(cache->text + cache->text_used, word, bytes);
    memcpy(cache->tokens + cache->tokens_used, tokens, count * sizeof *tokens);
    cache->words++;
    cache->text_used += bytes;
    cache->tokens_used += count;
}
