/* GPT-2's vocabulary: the bytes that each token stands for, and the pairs of tokens that merge. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct {
    int left, right; /* -1: an empty slot */
    int rank;
} MergePair;

typedef struct {
    int size;         /* the number of tokens */
    char *bytes;      /* the bytes of all tokens, one after the other */
    size_t *start;    /* [size + 1]: where each token's bytes begin */
    int of_byte[256]; /* the token of each single byte */
    int end_of_text;  /* "<|endoftext|>", or -1 */
    int merges;       /* the pair of rank r becomes token 256 + r */
    MergePair *pairs; /* hash table of pair_slots (a power of two) */
    uint32_t pair_slots;
} Vocabulary;

enum { NO_RANK = INT32_MAX };

/* Reads the contents of vocab.bpe, in which every line merges two tokens into a new one.  Tokens
 * are numbered as GPT-2 does: the 256 bytes in the order of the characters that stand for them,
 * then the results of the merges in the order of their lines, last <|endoftext|>.  -1 and an error
 * that says which line of the file in `dir` is wrong. */
int vocabulary_parse(Vocabulary *vocabulary, const char *text, size_t bytes, const char *dir);
void vocabulary_free(Vocabulary *vocabulary);

/* Shortens the vocabulary to the bytes and the first size - 256 merges, which is what it was when
 * it had that size in training.  It then has no end-of-text token.  -1 and an error if size is
 * below 256, or would leave out no merge. */
int vocabulary_shorten(Vocabulary *vocabulary, int size);

/* Returns the rank of a pair of tokens, or NO_RANK if they never merge. */
int vocabulary_rank(const Vocabulary *vocabulary, int left, int right);
