/* Text into a token file: the library part of `bcd tokenize`. */
#ifndef DATA_TOKENIZE_H
#define DATA_TOKENIZE_H

#include <stdint.h>
#include <stdio.h>

#include "tokenizer.h"

typedef struct {
    uint64_t taken, total; /* bytes of the input files (compressed ones as they are) */
    uint64_t documents, text_bytes, tokens;
} TokenizeStats;

/* Called about once a megabyte of text; non-zero stops, and leaves no file. */
typedef int (*TokenizeProgress)(void *context, const TokenizeStats *stats);

/* Writes the documents of inputs[count] (documents.h says which files) to the token file `out`, the
 * tokenizer's end-of-text token between each two; empty documents are left out.  The file appears
 * when it is complete.  Memory does not grow with the inputs, only with the longest line of JSON.
 * Returns 0, 1 when progress (may be NULL) stopped it, -1 and an error that names file and line. */
int tokenize_file(const char *out, const char *const *inputs, int count, const Tokenizer *tokenizer,
                  TokenizeStats *stats, TokenizeProgress progress, void *context);

/* The same of tokens that data/encode.py has made, which says how they are written: a line with the
 * tokenizer's name, its vocabulary and whether there is a mask, then 32-bit tokens.  Fills
 * stats->tokens.  -1 and an error. */
int tokenize_encoded(const char *out, FILE *from, TokenizeStats *stats);

#endif
