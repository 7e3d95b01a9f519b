/* The merges of one word: the step of byte-pair encoding that takes time. */
#ifndef DATA_MERGES_H
#define DATA_MERGES_H

#include "vocabulary.h"

/* A byte of the word.  It is a token at first; after merges it is the first byte of a token, or
 * inside one. */
typedef struct {
    int token;
    int rank; /* of the pair with the next token; NO_RANK if they never merge, or inside a token */
    uint32_t before, after; /* the first bytes of the neighbouring tokens */
} WordPiece;

/* Working memory, with room for the longest word so far; all zero at the start. */
typedef struct {
    WordPiece *piece;  /* [capacity] */
    uint64_t *queue;   /* [2 capacity]: a heap of pairs that may merge, the next one on top */
    uint32_t *merging; /* [capacity]: the first bytes of the pairs that merge next */
    int *tokens;       /* [capacity]: the result */
    size_t queued, capacity;
} Merger;

/* Encodes a word of `bytes` >= 1 bytes: merges the pair of lowest rank (the one learnt first)
 * wherever it occurs, from left to right, and repeats this until no pair of neighbours merges.
 * Takes O(n log n) for n bytes.  Overwrites merger->tokens and sets *count.  -1 and an error if
 * memory runs out or the word has 4 GiB. */
int merge_word(Merger *merger, const Vocabulary *vocabulary, const char *word, size_t bytes,
               size_t *count);
void merger_free(Merger *merger);

#endif
