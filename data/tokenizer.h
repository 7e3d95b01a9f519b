/* Text to token numbers and back.  A tokenizer serves one thread at a time. */
#pragma once

#include <stddef.h>

enum { TOKENIZER_NAME = 16, TOKENIZER_FILES = 2 };

typedef struct Tokenizer Tokenizer;
struct Tokenizer {
    const char *name; /* "bytes", "gpt2", or "gpt2:4096" for a part of it */
    int vocabulary;
    int end_of_text; /* token between documents, or -1 */
    /* Appends the tokens of text[bytes] to the *count numbers at *tokens, which it grows with
     * realloc, and raises *count.  -1 and an error when memory runs out. */
    int (*encode)(const Tokenizer *tokenizer, const char *text, size_t bytes, int **tokens,
                  size_t *count);
    /* Returns the bytes that a token stands for, not terminated, and sets *bytes to their
     * number. */
    const char *(*decode)(const Tokenizer *tokenizer, int token, size_t *bytes);
    void (*free)(Tokenizer *tokenizer); /* NULL: all callers share it */
};

/* Returns the tokenizer with one token for each byte, a vocabulary of 256. */
Tokenizer *tokenizer_bytes(void);
/* Opens GPT-2's byte-pair encoding from DIR/vocab.bpe.  `vocabulary` is 0 for all of its tokens, or
 * a number of tokens, the bytes and the first merges, for smaller models.  NULL and an error if the
 * file is missing or damaged. */
Tokenizer *tokenizer_gpt2(const char *dir, int vocabulary);
/* Does the same with the contents of the file; `dir` is for errors. */
Tokenizer *tokenizer_gpt2_parse(const char *merges, size_t bytes, const char *dir);
void tokenizer_free(Tokenizer *tokenizer);

/* The files of a model's own tokenizer, tokenizer.json before tokenizer.model; data/encode.py reads
 * the first one that a directory has. */
extern const char *const tokenizer_files[TOKENIZER_FILES];
/* Overwrites `name` with what a token file made by such a file says: hf: and twelve digits of the
 * file's checksum.  -1 and an error. */
int tokenizer_fingerprint(char name[TOKENIZER_NAME], const char *path);
/* Does the same for the first of these files that a model's directory has. */
int tokenizer_of_model(char name[TOKENIZER_NAME], const char *dir);
/* Refuses a model's directory that has another tokenizer than the one by this name.  It knows
 * nothing of names of other kinds, nor where there is none.  0, or -1 and an error. */
int tokenizer_check(const char *dir, const char *name);

/* Returns N of "wikitext2:N", "shakespeare:N", or a tokenizer's name "gpt2:N"; 0 if there is no
 * ":N", -1 if N is not a positive number. */
int tokenizer_part(const char *name);
