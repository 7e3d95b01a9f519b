/* Makes token files from text, for `bcd tokenize`. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "tokenizer.h"

enum { TOKENIZE_NOTE = 256 };

typedef struct {
    uint64_t bytes_read, total_bytes; /* of the input files, before decompression */
    uint64_t documents, text_bytes, tokens;
    uint64_t cut; /* records that are longer than the windows in which they are kept whole */
    char note[TOKENIZE_NOTE]; /* what the user should know about the tokens, or "" */
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

/* Sums up the sizes of the inputs.  It also checks that all exist, so that a missing last one is
 * reported at once instead of after hours.  -1 and an error. */
int tokenize_measure(uint64_t *total, const char *const *inputs, int count);

/* Writes a file for data/encode.py: a line "text", "line" or "element", and then the text, or each
 * line or element of JSON as one line after its number.  Raises stats->bytes_read and text_bytes.
 * Stops early, without an error, when `to` cannot be written.  Returns as tokenize_file. */
int tokenize_feed(FILE *to, const char *input, TokenizeStats *stats, TokenizeProgress progress,
                  void *context);

/* Writes a token file from the outputs from[files] of data/encode.py, each a line with the
 * vocabulary and perhaps a note, then 32-bit tokens, whose highest bit says that they are no
 * targets, and the next one that they begin a record.  `name` is that of the tokenizer.  With a
 * `context` (0: without) a record that would be cut, and fits into so many tokens, begins the next
 * window of so many; the gap, and the rest of the last window, repeat the token before, as no
 * target.  Sets stats->tokens, cut and note.  Returns as tokenize_file. */
int tokenize_encoded(const char *out, const char *name, FILE *const *from, int files, int context,
                     TokenizeStats *stats, TokenizeProgress progress, void *progress_context);
