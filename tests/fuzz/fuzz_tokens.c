/* Token files: refused, or every token is below the vocabulary. */
#include <stdlib.h>
#include <string.h>

#include "../../data/tokens.h"
#include "../../ref/base/checksum.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

/* A fuzzer cannot find the checksum, so it is corrected here and what follows it gets tested. */
static uint8_t *mend_checksum(const uint8_t *bytes, size_t count) {
    uint8_t *mended = malloc(count + 1);
    memcpy(mended, bytes, count);
    if (count < TOKENFILE_HEADER) return mended;
    const int width = mended[12];
    if (width != 2 && width != 4) return mended;
    Tokens tokens = {.data = mended + TOKENFILE_HEADER, .width = width};
    uint64_t sum = CHECKSUM_START;
    for (size_t i = 0; i < (count - TOKENFILE_HEADER) / (size_t)width; i++)
        sum = checksum_add(sum, (uint32_t)tokens_at(&tokens, i));
    for (int b = 0; b < 8; b++) mended[48 + b] = (uint8_t)(sum >> 8 * b);
    return mended;
}

static void parse(const uint8_t *bytes, size_t count) {
    Tokens tokens;
    if (tokens_parse(&tokens, bytes, count, "fuzz")) return;
    if (tokens.data + tokens.count * (size_t)tokens.width != bytes + count) abort();
    if (strlen(tokens.tokenizer) >= TOKENIZER_NAME) abort();
    for (size_t i = 0; i < tokens.count; i++)
        if (tokens_at(&tokens, i) < 0 || tokens_at(&tokens, i) >= tokens.vocabulary) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    parse(bytes, count);
    uint8_t *mended = mend_checksum(bytes, count);
    parse(mended, count);
    free(mended);
    return 0;
}
