/* Long sequences of tokens, in memory or in a token file, and data sets made of them. */
#pragma once

#include <time.h>

#include "../ref/dataset.h"
#include "file.h"
#include "tokenizer.h"

/* A token file is this header, little-endian, and then the tokens:
 *   bytes  0- 7  "BCDTOKEN"
 *          8-11  version, 1
 *         12-15  width: bytes per token, 2 or 4
 *         16-31  name of the tokenizer, zero-padded; see tokenizer_fingerprint
 *         32-35  vocabulary; every token is below it
 *         36-39  1 if the tokens have masks, 0 if not; 1 + 2 C if records are kept whole in
 *                windows of C tokens, with tokens between them that are no targets
 *         40-47  count of tokens
 *         48-55  checksum of the tokens (ref/base/checksum.h)
 *         56-63  checksum of the text it was made from, or zero
 *
 * In a masked file the highest bit of a token says that the token is input, but no target of the
 * loss; prompts are masked.  In numpy, for 16-bit tokens below 32768:
 *   tokens.astype("<u2") | (no_target.astype("<u2") << 15) */
enum { TOKENFILE_HEADER = 64 };

typedef struct {
    const unsigned char *data; /* [count][width], little-endian */
    size_t count;
    int width; /* 1, 2 or 4 */
    int vocabulary;
    bool masked;
    int context; /* C, as above; 0: records follow each other */
    char tokenizer[TOKENIZER_NAME];
    uint64_t checksum, source; /* as in the file */
    void *base;                /* for tokens_free: memory, or a mapping if mapped > 0 */
    size_t mapped;             /* bytes */
    int file;                  /* the open file, if mapped > 0 */
    struct timespec changed;   /* when that was last written to */
} Tokens;

/* Returns a token as it is in the file, with its mask. */
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

/* Returns true if a token is a target of the loss. */
static inline bool tokens_is_target(const Tokens *tokens, size_t i) {
    return !tokens->masked || !(tokens_raw(tokens, i) & token_mask(tokens->width));
}

void tokens_free(Tokens *tokens);

/* Checks a token file and maps it into memory; it may be larger than the memory.  -1 and an error
 * that names the file. */
int tokens_open(Tokens *tokens, const char *path);

/* Returns true if two token files have the same tokens by the same tokenizer, as their headers say;
 * false if one cannot be read. */
bool tokens_same(const char *a, const char *b);

/* Checks the bytes of a token file, which must outlive *tokens.  `path` is for errors. */
int tokens_parse(Tokens *tokens, const unsigned char *bytes, size_t count, const char *path);

/* Returns bytes as tokens, with a vocabulary of 256; tokens_free then frees `bytes`. */
Tokens tokens_of_bytes(unsigned char *bytes, size_t count);

/* Packs token numbers, all below `vocabulary`.  -1 and an error if memory runs out. */
int tokens_pack(Tokens *tokens, const int *numbers, size_t count, const char *tokenizer,
                int vocabulary);

/* Makes a data set of the tokens [begin, end), cut into (end - begin - 1) / context samples, or the
 * first `limit` of them if that is not 0.  A sample has `context` inputs, and as targets the token
 * that follows each; the inputs of samples do not overlap, and there are at most INT32_MAX
 * samples.  Those of a masked file in which nothing is a target are left out.  The data set frees
 * `tokens`, also on failure.  NULL and an error if there are too few tokens, no target, or memory
 * runs out. */
Dataset *tokens_dataset(const char *name, Tokens tokens, size_t begin, size_t end, int context,
                        int limit);

/* Finds out whether a data set still has the tokens that it was opened with, as a mapped file shows
 * what others write into it.  A file of the same name that replaces it is another, and harmless.
 * Data sets of images are always unchanged.  -1 and an error if it has not. */
int tokens_unchanged(const Dataset *dataset);

/* Writes a token file: open, add any number of times, then commit, which makes the file appear, or
 * abandon. */
typedef struct {
    AtomicFile atomic;
    Tokens header; /* with count and checksum so far; of a masked file context may be set */
} TokenWriter;

/* -1 and an error if the file cannot be written. */
int tokenwriter_open(TokenWriter *writer, const char *path, const char *tokenizer, int vocabulary,
                     bool masked, uint64_t source);
/* Appends tokens.  In a masked file the number -1 - token stands for a token that is no target.  -1
 * and an error if a token is not below the vocabulary or the file cannot be written. */
int tokenwriter_add(TokenWriter *writer, const int *numbers, size_t count);
int tokenwriter_commit(TokenWriter *writer);
void tokenwriter_abandon(TokenWriter *writer);
