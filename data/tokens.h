/* Long rows of tokens, in memory or in a token file, and data sets cut from them. */
#ifndef DATA_TOKENS_H
#define DATA_TOKENS_H

#include "../ref/dataset.h"
#include "file.h"

/* A token file is this header, little-endian, and then the tokens:
 *   bytes  0- 7  "BCDTOKEN"
 *          8-11  version, 1
 *         12-15  width: bytes per token, 2 or 4
 *         16-31  name of the tokenizer, zero-padded
 *         32-35  vocabulary: every token is below
 *         36-39  1: masked; else 0
 *         40-47  count of tokens
 *         48-55  checksum of the tokens (checksum.h)
 *         56-63  what it was made from: a checksum, or zero
 *
 * In a masked file the highest bit of a token says that it is read but not learned: it is no
 * target of the loss.  So prompts are treated.  From numpy, 16-bit tokens below 32768:
 *   tokens.astype("<u2") | (no_target.astype("<u2") << 15) */
enum { TOKENFILE_HEADER = 64, TOKENIZER_NAME = 16 };

typedef struct {
    const unsigned char *data; /* [count][width], little-endian */
    size_t count;
    int width; /* 1, 2 or 4 */
    int vocabulary;
    bool masked;
    char tokenizer[TOKENIZER_NAME];
    uint64_t checksum, source; /* as in the file */
    void *base;                /* what tokens_free frees: memory, or a mapping if mapped > 0 */
    size_t mapped;
} Tokens;

/* A token as it stands in the file, with its mask. */
static inline uint32_t tokens_raw(const Tokens *tokens, size_t i) {
    const unsigned char *p = tokens->data + i * (size_t)tokens->width;
    uint32_t token = p[0];
    if (tokens->width > 1) token |= (uint32_t)p[1] << 8;
    if (tokens->width > 2) token |= (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    return token;
}

static inline uint32_t token_mask(int width) { return (uint32_t)1 << (8 * width - 1); }

static inline int tokens_at(const Tokens *tokens, size_t i) {
    uint32_t token = tokens_raw(tokens, i);
    return (int)(tokens->masked ? token & ~token_mask(tokens->width) : token);
}

/* Whether the loss counts a token. */
static inline bool tokens_is_target(const Tokens *tokens, size_t i) {
    return !tokens->masked || !(tokens_raw(tokens, i) & token_mask(tokens->width));
}

void tokens_free(Tokens *tokens);

/* Maps a token file into memory, so that it may be larger than that, after checking all of it.  -1
 * and an error that names the file. */
int tokens_open(Tokens *tokens, const char *path);

/* The same check on a file's bytes, which must outlive tokens.  `path` is for the error. */
int tokens_parse(Tokens *tokens, const unsigned char *bytes, size_t count, const char *path);

/* Bytes as tokens, vocabulary 256.  Takes over `bytes`, which free() frees. */
Tokens tokens_of_bytes(unsigned char *bytes, size_t count);

/* Packs token numbers, all below `vocabulary`.  -1 and an error if memory runs out. */
int tokens_pack(Tokens *tokens, const int *numbers, size_t count, const char *tokenizer,
                int vocabulary);

/* The data set of the tokens begin <= i < end, cut into (end - begin - 1) / context samples of
 * `context` inputs and the tokens one further on as targets; samples do not overlap.  limit: at
 * most so many samples, 0: all.  Takes over tokens, also on failure. */
Dataset *tokens_dataset(const char *name, Tokens tokens, size_t begin, size_t end, int context,
                        int limit);

/* Writes a token file: open, add any number of times, commit; it appears at the commit, or never.
 */
typedef struct {
    AtomicFile atomic;
    Tokens header; /* count and checksum so far */
} TokenWriter;

/* -1 and an error if the file cannot be written. */
int tokenwriter_open(TokenWriter *writer, const char *path, const char *tokenizer, int vocabulary,
                     bool masked, uint64_t source);
/* Of a masked file, -1 - token is a token that is no target.  -1 and an error if a token is not
 * below the vocabulary, or the disk is full. */
int tokenwriter_add(TokenWriter *writer, const int *numbers, size_t count);
int tokenwriter_commit(TokenWriter *writer);
void tokenwriter_abandon(TokenWriter *writer);

#endif
