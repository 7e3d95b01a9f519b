#include "documents.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "../ref/error.h"
#include "file.h"

enum { INPUT_BYTES = 1 << 17 };

struct ByteStream {
    FILE *file;
    char path[PATH_BYTES];
    ZSTD_DStream *zstd; /* NULL: plain */
    bool within_frame;  /* zstd: the file must not end here */
    ZSTD_inBuffer input;
    uint64_t bytes_read;
    char buffer[INPUT_BYTES];
};

/* Fills the input buffer, which stays empty at the end of the file. */
static int refill(ByteStream *stream) {
    stream->input = (ZSTD_inBuffer){stream->buffer, 0, 0};
    stream->input.size = fread(stream->buffer, 1, INPUT_BYTES, stream->file);
    stream->bytes_read += stream->input.size;
    if (ferror(stream->file))
        return error_set("tokenize: %s: cannot read: %s", stream->path, strerror(errno));
    return 0;
}

ByteStream *stream_of(FILE *file, const char *path) {
    static const unsigned char magic[4] = {0x28, 0xB5, 0x2F, 0xFD};
    ByteStream *stream = calloc(1, sizeof *stream);
    if (!stream) {
        error_set("tokenize: %s: out of memory", path);
        fclose(file);
        return NULL;
    }
    stream->file = file;
    snprintf(stream->path, sizeof stream->path, "%s", path);
    int failed = refill(stream);
    if (!failed && stream->input.size >= 4 && memcmp(stream->buffer, magic, 4) == 0) {
        stream->zstd = ZSTD_createDStream();
        if (!stream->zstd) failed = error_set("tokenize: %s: no memory for zstd", path);
    }
    if (failed) {
        stream_close(stream);
        return NULL;
    }
    return stream;
}

ByteStream *stream_open(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        error_set("tokenize: %s: %s", path, strerror(errno));
        return NULL;
    }
    return stream_of(file, path);
}

void stream_close(ByteStream *stream) {
    if (!stream) return;
    ZSTD_freeDStream(stream->zstd);
    fclose(stream->file);
    free(stream);
}

uint64_t stream_bytes_read(const ByteStream *stream) { return stream->bytes_read; }

static long read_plain(ByteStream *stream, char *to, size_t size) {
    if (stream->input.pos == stream->input.size && refill(stream)) return -1;
    const size_t left = stream->input.size - stream->input.pos;
    const size_t count = left < size ? left : size;
    memcpy(to, stream->buffer + stream->input.pos, count);
    stream->input.pos += count;
    return (long)count;
}

static long read_zstd(ByteStream *stream, char *to, size_t size) {
    ZSTD_outBuffer output = {to, size, 0};
    while (output.pos == 0) {
        const bool empty = stream->input.pos == stream->input.size;
        if (empty && refill(stream)) return -1;
        /* Even without input, the decoder may still have output. */
        if (empty && stream->input.size == 0 && !stream->within_frame) return 0;
        const size_t before = stream->input.pos;
        const size_t hint = ZSTD_decompressStream(stream->zstd, &output, &stream->input);
        if (ZSTD_isError(hint))
            return error_set("tokenize: %s: damaged zstd: %s; get it again", stream->path,
                             ZSTD_getErrorName(hint));
        stream->within_frame = hint != 0;
        if (output.pos == 0 && stream->input.pos == before && stream->input.size == 0)
            return error_set("tokenize: %s: truncated zstd; get it again", stream->path);
    }
    return (long)output.pos;
}

long stream_read(ByteStream *stream, char *to, size_t size) {
    return stream->zstd ? read_zstd(stream, to, size) : read_plain(stream, to, size);
}
