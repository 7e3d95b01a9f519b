/* Makes token files from text, for `bcd tokenize`. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "tokenizer.h"

typedef struct {
    uint64_t bytes_read, total_bytes; /* of the input files, before decompression */
    uint64_t documents, text_bytes, tokens;
} TokenizeStats;

/* Called about once for each megabyte of text.  Return 0 to go on, or non-zero to stop, which
 * leaves no file. */
typedef int (*TokenizeProgress)(void *context, const TokenizeStats *stats);

/* Writes the documents of inputs[count] to the token file `out`, with the tokenizer's end-of-text
 * token between every two; leaves out empty documents.  documents.h says which files it reads.
 * `out` appears when it is complete.  The memory needed grows only with the longest line of JSON.
 * Returns 0, 1 if `progress` (may be NULL) stopped it, or -1 and an error that names file and
 * line. */
int tokenize_file(const char *out, const char *const *inputs, int count, const Tokenizer *tokenizer,
                  TokenizeStats *stats, TokenizeProgress progress, void *context);

/* Writes a token file from the output of data/encode.py: a line with the tokenizer's name, its
 * vocabulary, and 1 if tokens have masks, then 32-bit tokens.  Sets stats->tokens.  -1 and an
 * error. */
int tokenize_encoded(const char *out, FILE *from, TokenizeStats *stats);
