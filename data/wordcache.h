/* A cache of encoded words.  Text repeats itself, so that nearly every word of a book is found
 * here. */
#ifndef DATA_WORDCACHE_H
#define DATA_WORDCACHE_H

#include <stddef.h>
#include <stdint.h>

enum { WORD_MAX_BYTES = 64 }; /* longer words are rare and not kept */

typedef struct {
    size_t text, tokens; /* where they begin in WordCache.text and .tokens */
    uint32_t hash;
    uint16_t bytes, count; /* bytes 0: an empty slot */
} CachedWord;

typedef struct {
    CachedWord *slot;
    char *text;
    int *tokens;
    size_t words, text_used, tokens_used;
} WordCache;

/* -1 and an error if memory runs out. */
int wordcache_init(WordCache *cache);
void wordcache_free(WordCache *cache);

/* Returns the tokens of a word and sets *count, or returns NULL.  Valid until the next
 * wordcache_put. */
const int *wordcache_get(const WordCache *cache, const char *word, size_t bytes, size_t *count);

/* Adds a word of 1 to WORD_MAX_BYTES bytes that is not in the cache, with at most as many tokens.
 * If the cache is full, it is emptied first. */
void wordcache_put(WordCache *cache, const char *word, size_t bytes, const int *tokens,
                   size_t count);

#endif
