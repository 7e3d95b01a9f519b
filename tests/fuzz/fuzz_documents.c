/* Text, JSON lines and zstd: the first byte chooses; the rest is read to its end or refused. */
#include <stdlib.h>
#include <string.h>

#include "../../data/documents.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    if (count < 2) return 0;
    FILE *file = fmemopen((void *)(bytes + 1), count - 1, "rb");
    if (!file) abort();
    Stream *stream = stream_of(file, "fuzz");
    Documents *documents = stream ? documents_of(stream, "fuzz", bytes[0] & 1) : NULL;
    if (!documents) return 0;
    const char *text;
    size_t length;
    bool starts;
    uint64_t read = 0;
    while (documents_next(documents, &text, &length, &starts) > 0) {
        for (size_t i = 0; i < length; i++) read += (unsigned char)text[i] != 0; /* touch it all */
        if (read > (uint64_t)1 << 26) break; /* zstd can promise much in few bytes */
    }
    documents_close(documents);
    return 0;
}
