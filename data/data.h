/* Data sets by name.
 *
 *   synthetic            ten classes of generated 32 x 32 x 3 images; needs no download
 *   cifar10, cifar100    the binary versions
 *   text                 the project's own sources as bytes; needs no download
 *   text1, text2         the first and the second half of them
 *   shakespeare          tinyshakespeare.txt as bytes
 *   wikitext2            WikiText-2 as GPT-2 BPE tokens
 *   wikitext2:N, shakespeare:N  the first N tokens of GPT-2's vocabulary, all there is written in
 *   webtext2             DIR/webtext2.tokens, which `bcd tokenize` makes of a copy of WebText2
 *   FILE.tokens          a token file made by `bcd tokenize`
 */
#ifndef DATA_DATA_H
#define DATA_DATA_H

#include "../ref/dataset.h"
#include "request.h"
#include "tokenizer.h"

/* NULL and an error that says what is missing and how to get it. */
Dataset *data_open(const DataRequest *request);

/* The tokenizer a token set was made with, for sampling text; NULL and an error for image sets. */
Tokenizer *data_tokenizer(const char *name, const char *dir);

/* N of "wikitext2:N" or "shakespeare:N", or of the tokenizer's name "gpt2:N"; 0 without one, -1 if
 * it is not a positive number. */
int data_vocabulary(const char *name);

/* Whether the files of a set are there (not whether they are whole); those that need none always
 * are. */
bool data_present(const char *name, const char *dir);

/* Whether a name is a set of token sequences (1), of images (0), or unknown (-1 and an error that
 * lists the names). */
int data_is_tokens(const char *name);

#endif
