/* The files of a vocabulary: encoder.json, a zero byte, vocab.bpe.  What is accepted must encode
 * and decode without harm.  Then any bytes through a sound vocabulary: decoding gives them back. */
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

/* Without the rest of the tokenizer, whose cache takes longer to set up than this. */
static void try_files(const char *encoder, size_t encoder_bytes, const char *merges,
                      size_t merges_bytes) {
    Vocabulary vocabulary;
    if (vocabulary_parse(&vocabulary, encoder, encoder_bytes, merges, merges_bytes, "fuzz")) return;
    for (int token = 0; token < vocabulary.size; token++)
        if (vocabulary.start[token] >= vocabulary.start[token + 1]) abort();
    for (int byte = 0; byte < 256; byte++)
        if (vocabulary.of_byte[byte] < 0 || vocabulary.of_byte[byte] >= vocabulary.size) abort();
    for (int rank = 0; rank < vocabulary.merges; rank++)
        if (vocabulary.merged[rank] < 0 || vocabulary.merged[rank] >= vocabulary.size) abort();
    vocabulary_free(&vocabulary);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    static Tokenizer *tiny;
    if (!tiny)
        tiny = tokenizer_gpt2_parse(tiny_encoder(), strlen(tiny_encoder()), tiny_merges(),
                                    strlen(tiny_merges()), "tiny");
    const char *text = (const char *)bytes;
    check_inverse(tiny, text, count);
    const char *zero = count ? memchr(text, 0, count) : NULL;
    const size_t first = zero ? (size_t)(zero - text) : count;
    if (zero) try_files(text, first, zero + 1, count - first - 1);
    /* Each file also beside a sound other one, so that both readers are reached. */
    try_files(text, count, tiny_merges(), strlen(tiny_merges()));
    try_files(tiny_encoder(), strlen(tiny_encoder()), text, count);
    return 0;
}
