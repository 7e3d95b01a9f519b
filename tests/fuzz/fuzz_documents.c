/* Text, JSON lines and arrays, gzip and zstd. The first byte chooses the format, and the rest is
 * read to its end or refused. Plain text must give the same tokens in pieces as in one. */
#include <stdlib.h>
#include <string.h>

#include "../../data/documents.h"
#include "../../data/tokenizer.h"
#include "../data/tiny.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static const Tokenizer *tiny(void) {
    static Tokenizer *tokenizer;
    if (!tokenizer) tokenizer = tokenizer_gpt2_parse(tiny_merges(), strlen(tiny_merges()), "tiny");
    return tokenizer;
}

typedef struct {
    char *text;
    int *tokens;
    size_t bytes, count;
} Joined;

static void add_piece(Joined *joined, const char *text, size_t bytes) {
    joined->text = realloc(joined->text, joined->bytes + bytes + 1);
    memcpy(joined->text + joined->bytes, text, bytes);
    joined->bytes += bytes;
    if (tiny()->encode(tiny(), text, bytes, &joined->tokens, &joined->count)) abort();
}

static void compare_with_whole(const Joined *joined) {
    int *tokens = NULL;
    size_t count = 0;
    if (tiny()->encode(tiny(), joined->text, joined->bytes, &tokens, &count)) abort();
    if (count != joined->count || memcmp(tokens, joined->tokens, count * sizeof *tokens)) abort();
    free(tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    enum {
        ENOUGH = 1 << 16
    }; /* a few bytes of zstd can expand to very many, and long words take long */
    if (count < 2) return 0;
    const bool json = bytes[0] & 1;
    FILE *file = fmemopen((void *)(bytes + 1), count - 1, "rb");
    if (!file) abort();
    Documents *documents =
        documents_of(pieces_of(textfile_of(file, "fuzz"), json, 1 + (size_t)(bytes[0] >> 1)));
    if (!documents) return 0;
    Joined joined = {NULL, NULL, 0, 0};
    const char *text;
    size_t length;
    bool starts;
    bool all = true;
    while (all && documents_next(documents, &text, &length, &starts) > 0) {
        all = joined.bytes + length <= ENOUGH;
        if (all) add_piece(&joined, text, length);
    }
    if (!json && all && joined.bytes > 0) compare_with_whole(&joined);
    documents_close(documents);
    free(joined.text);
    free(joined.tokens);
    return 0;
}
