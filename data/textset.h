/* Data sets of text.  All take the request, and the directory of the data sets; `vocabulary` is how
 * many of GPT-2's tokens are used, 0: all (of Shakespeare: bytes).  NULL and an error that says
 * what is missing. */
#ifndef DATA_TEXTSET_H
#define DATA_TEXTSET_H

#include "../ref/dataset.h"
#include "request.h"

/* The project's own sources as bytes: *.c, *.h, *.cu and *.md in a fixed order.  Training is the
 * first nine tenths, validation and test the rest.  half 1 and 2: one half of them, split so. */
Dataset *textset_sources(const DataRequest *request, int half);

/* DIR/tinyshakespeare.txt as bytes, or with a vocabulary in GPT-2's tokens, split likewise. */
Dataset *textset_shakespeare(const DataRequest *request, const char *dir, int vocabulary);

/* DIR/wikitext-2/{train,valid,test}.txt in the tokens of DIR/gpt2-bpe.  The tokens are kept next
 * to the text, where the directory can be written to, and used again while text and vocabulary are
 * the same. */
Dataset *textset_wikitext2(const DataRequest *request, const char *dir, int vocabulary);

/* A token file: the first nine tenths for training; for validation and test the rest, but no more
 * than its last million tokens (then training has all but those). */
Dataset *textset_file(const DataRequest *request, const char *path);

#endif
