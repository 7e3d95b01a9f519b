/* Data sets of text.  DIR is request->dir.  NAME:N is in the first N of GPT-2's tokens, NAME in all
 * of them, or for Shakespeare in bytes.  NULL and an error that says what is missing. */
#pragma once

#include "data.h"

/* Opens the project's own sources as bytes, all for "text", or a half for "text1" and "text2".  The
 * first nine tenths of that are for training, the rest for validation and test. */
Dataset *textset_sources(const DataRequest *request);
/* Returns the text of the sources in a tree (*.c, *.h, *.cu, *.md), in an order that depends only
 * on their names, for the caller to free.  NULL and an error. */
unsigned char *sources_read(const char *root, size_t *bytes);

/* Opens DIR/tinyshakespeare.txt, split in the same way. */
Dataset *textset_shakespeare(const DataRequest *request);

/* Opens DIR/wikitext-2/{train,valid,test}.txt in the tokens of DIR/gpt2-bpe.  If the directory can
 * be written to, the tokens are kept next to the text and used again while text and vocabulary stay
 * the same. */
Dataset *textset_wikitext2(const DataRequest *request);

/* Opens a token file.  The last tenth, but no more than a million tokens, is for validation and
 * test, the rest for training. */
Dataset *textset_file(const DataRequest *request, const char *path);
