/* GPT-2's vocabulary: which bytes each token stands for, and which pairs merge into which. */
#ifndef DATA_VOCABULARY_H
#define DATA_VOCABULARY_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    int left, right; /* -1: an empty slot */
    int rank;
} MergePair;

typedef struct {
    int size;         /* of the vocabulary */
    char *bytes;      /* of all tokens, one after the other */
    size_t *start;    /* [size + 1]: where each token's bytes begin */
    int of_byte[256]; /* the token of each single byte */
    int end_of_text;  /* "<|endoftext|>", or -1 */
    int merges;
    int *merged;      /* [merges]: the token that the pair of this rank becomes */
    MergePair *pairs; /* hash table of pair_slots (a power of two) */
    uint32_t pair_slots;
} Vocabulary;

enum { NO_RANK = INT32_MAX };

/* From the contents of encoder.json and vocab.bpe.  Both are checked: tokens are numbered 0 to
 * size - 1 without gaps, there is one for each byte, and every merge is of two tokens into a third.
 * -1 and an error that says which file in `dir` is wrong and where. */
int vocabulary_parse(Vocabulary *vocabulary, const char *encoder, size_t encoder_bytes,
                     const char *merges, size_t merges_bytes, const char *dir);
void vocabulary_free(Vocabulary *vocabulary);

/* Leaves the bytes and the first size - 256 merges: the vocabulary that training the tokenizer
 * would have had at that size.  There is no end of text then.  -1 and an error if it is not larger.
 */
int vocabulary_shorten(Vocabulary *vocabulary, int size);

/* The rank of a pair of tokens, or NO_RANK if they never merge. */
int vocabulary_rank(const Vocabulary *vocabulary, int left, int right);

#endif
