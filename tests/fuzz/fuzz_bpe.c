/* Encodes any bytes with a valid vocabulary: decoding must give them back. Then reads the same
 * bytes as a vocabulary file: one that is accepted has a token for every byte, and no empty
 * token. */
#include <stdint.h>
#include <stdlib.h>

#include "../../data/tokenizer.h"
#include "../../data/vocabulary.h"
#include "../data/tiny.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void check_inverse(const Tokenizer *tokenizer, const char *text, size_t bytes) {
    int *tokens = NULL;
    size_t count = 0, done = 0, length;
    if (tokenizer->encode(tokenizer, text, bytes, &tokens, &count)) abort();
    for (size_t i = 0; i < count; i++, done += length) {
        const char *piece = tokenizer->decode(tokenizer, tokens[i], &length);
        if (length == 0 || length > bytes - done || memcmp(piece, text + done, length) != 0)
            abort();
    }
    if (done != bytes) abort();
    free(tokens);
}

/* Reads the vocabulary only, since the cache of a whole tokenizer takes longer to create. */
static void try_file(const char *text, size_t bytes) {
    Vocabulary vocabulary;
    if (vocabulary_parse(&vocabulary, text, bytes, "fuzz")) return;
    for (int token = 0; token < vocabulary.size; token++)
        if (vocabulary.start[token] >= vocabulary.start[token + 1]) abort();
    for (int byte = 0; byte < 256; byte++)
        if (vocabulary.of_byte[byte] < 0 || vocabulary.of_byte[byte] > 255) abort();
    if (vocabulary.size != 256 + vocabulary.merges + 1) abort();
    vocabulary_free(&vocabulary);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    static Tokenizer *tiny;
    if (!tiny) tiny = tokenizer_gpt2_parse(tiny_merges(), strlen(tiny_merges()), "tiny");
    const char *text = (const char *)bytes;
    check_inverse(tiny, text, count);
    try_file(text, count);
    return 0;
}
