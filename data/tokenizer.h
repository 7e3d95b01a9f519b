/* Text to token numbers and back.  A tokenizer serves one thread at a time. */
#ifndef DATA_TOKENIZER_H
#define DATA_TOKENIZER_H

#include <stddef.h>

typedef struct Tokenizer Tokenizer;
struct Tokenizer {
    const char *name; /* "bytes", "gpt2", or "gpt2:4096" for a part of it */
    int vocabulary;
    int end_of_text; /* token between documents, or -1 */
    /* Appends the tokens of text[bytes] to *tokens (grown with realloc), *count of them, and raises
     * *count.  -1 and an error when memory runs out. */
    int (*encode)(const Tokenizer *tokenizer, const char *text, size_t bytes, int **tokens,
                  size_t *count);
    /* The bytes one token stands for; *bytes is their number.  Not terminated. */
    const char *(*decode)(const Tokenizer *tokenizer, int token, size_t *bytes);
    void (*free)(Tokenizer *tokenizer);
};

/* One token a byte: vocabulary 256. */
Tokenizer *tokenizer_bytes(void);
/* GPT-2's byte-pair encoding, exactly: reads DIR/encoder.json and DIR/vocab.bpe.  vocabulary: 0, or
 * so many tokens, the bytes and the first merges, for models that are too small for all. */
Tokenizer *tokenizer_gpt2(const char *dir, int vocabulary);
/* The same from the contents of the two files; `dir` is for errors. */
Tokenizer *tokenizer_gpt2_parse(const char *encoder, size_t encoder_bytes, const char *merges,
                                size_t merges_bytes, const char *dir);
void tokenizer_free(Tokenizer *tokenizer);

#endif
