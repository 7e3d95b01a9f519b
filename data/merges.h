/* The merges of one word: the step of byte-pair encoding that takes time. */
#ifndef DATA_MERGES_H
#define DATA_MERGES_H

#include "vocabulary.h"

/* A place of the word: a byte at first, then the first byte of a token, or inside one. */
typedef struct {
    int token;
    int rank; /* of the pair with the next token; NO_RANK: they never merge, or inside a token */
    uint32_t before, after; /* the neighbouring tokens' places */
} WordPiece;

/* Room for the longest word so far; all zero at the start. */
typedef struct {
    WordPiece *piece;  /* [capacity] */
    uint64_t *queue;   /* [2 capacity]: a heap of pairs that may merge, the next one on top */
    uint32_t *merging; /* [capacity]: places of the pairs that merge next */
    int *tokens;       /* [capacity]: the result */
    size_t queued, capacity;
} Merger;

/* Merges the pair of neighbours that was learnt first, wherever it stands, from the left, and again
 * until no pair is known.  In O(n log n) for a word of n = `bytes` >= 1 bytes.  Leaves `count`
 * tokens in merger->tokens; -1 and an error if memory runs out or the word has 4 GiB. */
int merge_word(Merger *merger, const Vocabulary *vocabulary, const char *word, size_t bytes,
               size_t *count);
void merger_free(Merger *merger);

#endif
