/* Data sets of text. */
#ifndef DATA_TEXTSET_H
#define DATA_TEXTSET_H

#include "data.h"

/* The project's own sources as bytes: *.c, *.h, *.cu and *.md in a fixed order.  Training is the
 * first nine tenths, validation and test the rest.  "text1" and "text2" are their halves, each
 * split so. */
Dataset *textset_sources(const DataRequest *request);

/* DIR/tinyshakespeare.txt as bytes, split likewise; "shakespeare:N": as wikitext2:N. */
Dataset *textset_shakespeare(const DataRequest *request, const char *dir);

/* DIR/wikitext-2/{train,valid,test}.txt in the tokens of DIR/gpt2-bpe, or the first N of
 * them for "wikitext2:N".  The tokens are kept beside
 * the text, where the directory can be written to, and used again while text and vocabulary are
 * the same. */
Dataset *textset_wikitext2(const DataRequest *request, const char *dir);

/* A token file: the first nine tenths for training; for validation and test the rest, but no more
 * than its last million tokens (then training has all but those). */
Dataset *textset_file(const DataRequest *request, const char *path);

/* DIR/webtext2.tokens, likewise. */
Dataset *textset_webtext2(const DataRequest *request, const char *dir);

#endif
