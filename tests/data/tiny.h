/* A vocabulary small enough to work out by hand, in the format of GPT-2's files: token b is the
 * byte b, then come the merges in order, last the end of text. */
#ifndef TESTS_DATA_TINY_H
#define TESTS_DATA_TINY_H

#include <stddef.h>

enum { TINY_MERGES = 11, TINY_END = 256 + TINY_MERGES };

/* Tokens 256 and on, as bytes. */
extern const char *const tiny_merged[TINY_MERGES];

/* The texts of encoder.json and vocab.bpe; static. */
const char *tiny_encoder(void);
const char *tiny_merges(void);

#endif
