/* Text, JSON lines and zstd: the first byte chooses how; the rest is read to its end or refused.
 * The tokens of the pieces of plain text must be those of the whole. */
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
} Pieces;

static void add_piece(Pieces *pieces, const char *text, size_t bytes) {
    pieces->text = realloc(pieces->text, pieces->bytes + bytes + 1);
    memcpy(pieces->text + pieces->bytes, text, bytes);
    pieces->bytes += bytes;
    if (tiny()->encode(tiny(), text, bytes, &pieces->tokens, &pieces->count)) abort();
}

static void compare_with_whole(const Pieces *pieces) {
    int *tokens = NULL;
    size_t count = 0;
    if (tiny()->encode(tiny(), pieces->text, pieces->bytes, &tokens, &count)) abort();
    if (count != pieces->count || memcmp(tokens, pieces->tokens, count * sizeof *tokens)) abort();
    free(tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    enum { ENOUGH = 1 << 16 }; /* zstd can promise much in few bytes, and long words take long */
    if (count < 2) return 0;
    const bool lines = bytes[0] & 1;
    FILE *file = fmemopen((void *)(bytes + 1), count - 1, "rb");
    if (!file) abort();
    Documents *documents =
        documents_of(pieces_of(textfile_of(file, "fuzz"), lines, 1 + (size_t)(bytes[0] >> 1)));
    if (!documents) return 0;
    Pieces pieces = {NULL, NULL, 0, 0};
    const char *text;
    size_t length;
    bool starts;
    bool all = true;
    while (all && documents_next(documents, &text, &length, &starts) > 0) {
        all = pieces.bytes + length <= ENOUGH;
        if (all) add_piece(&pieces, text, length);
    }
    if (!lines && all && pieces.bytes > 0) compare_with_whole(&pieces);
    documents_close(documents);
    free(pieces.text);
    free(pieces.tokens);
    return 0;
}
