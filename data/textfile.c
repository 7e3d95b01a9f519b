#include "textfile.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "../ref/base/error.h"
#include "file.h"

enum { INPUT_BYTES = 1 << 17, HEAD_BYTES = 512 };

struct TextFile {
    FILE *file;
    char path[PATH_BYTES];
    uint64_t bytes_read;
    char input[INPUT_BYTES]; /* [begin, end) is what was read last, not yet decompressed */
    size_t begin, end;
    long (*read)(TextFile *, char *to, size_t size); /* read_plain, read_gzip or read_zstd */
    bool within;                                     /* compressed data must not end here */
    z_stream *gzip;
    ZSTD_DStream *zstd;
    char head[HEAD_BYTES]; /* the beginning of the text; [head_begin, head_end) is to be returned */
    size_t head_begin, head_end;
};

/* ---- the bytes of the file, decompressed ---- */

/* Reads more input if there is none left; at the end of the file there is none. */
static int refill(TextFile *text) {
    if (text->begin < text->end) return 0;
    text->begin = 0;
    text->end = fread(text->input, 1, INPUT_BYTES, text->file);
    text->bytes_read += text->end;
    if (ferror(text->file))
        return error_set("tokenize: %s: cannot read: %s", text->path, strerror(errno));
    return 0;
}

static long read_plain(TextFile *text, char *to, size_t size) {
    if (refill(text)) return -1;
    const size_t left = text->end - text->begin, count = left < size ? left : size;
    memcpy(to, text->input + text->begin, count);
    text->begin += count;
    return (long)count;
}

static int damaged(const TextFile *text, const char *format, const char *reason) {
    return error_set("tokenize: %s: damaged %s: %s; get it again", text->path, format, reason);
}

static int truncated(const TextFile *text, const char *format) {
    return error_set("tokenize: %s: truncated %s; get it again", text->path, format);
}

/* A file of gzip, or several one after another. */
static long read_gzip(TextFile *text, char *to, size_t size) {
    z_stream *gzip = text->gzip;
    gzip->next_out = (Bytef *)to;
    gzip->avail_out = size > INPUT_BYTES ? INPUT_BYTES : (uInt)size;
    const uInt wanted = gzip->avail_out;
    while (gzip->avail_out == wanted) {
        if (refill(text)) return -1;
        const bool empty = text->begin == text->end;
        if (empty) return text->within ? truncated(text, "gzip") : 0;
        /* As gzip -d does: some tapes and disks pad files with zeros. */
        while (!text->within && text->begin < text->end && !text->input[text->begin]) text->begin++;
        if (text->begin == text->end) continue;
        gzip->next_in = (Bytef *)text->input + text->begin;
        gzip->avail_in = (uInt)(text->end - text->begin);
        const int status = inflate(gzip, Z_NO_FLUSH);
        if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
            return damaged(text, "gzip", gzip->msg ? gzip->msg : "no memory");
        text->begin = text->end - gzip->avail_in;
        text->within = status != Z_STREAM_END;
        if (status == Z_STREAM_END) inflateReset(gzip);
    }
    return wanted - gzip->avail_out;
}

static long read_zstd(TextFile *text, char *to, size_t size) {
    ZSTD_outBuffer output = {to, size, 0};
    while (output.pos == 0) {
        if (refill(text)) return -1;
        /* Even without input, the decoder may still have output. */
        const bool empty = text->begin == text->end;
        if (empty && !text->within) return 0;
        ZSTD_inBuffer input = {text->input, text->end, text->begin};
        const size_t hint = ZSTD_decompressStream(text->zstd, &output, &input);
        if (ZSTD_isError(hint) &&
            ZSTD_getErrorCode(hint) == ZSTD_error_frameParameter_windowTooLarge)
            return error_set(
                "tokenize: %s: this zstd needs more than 128 MB of memory; type: zstd -d "
                "--long=31 '%s'",
                text->path, text->path);
        if (ZSTD_isError(hint)) return damaged(text, "zstd", ZSTD_getErrorName(hint));
        text->begin = input.pos;
        text->within = hint != 0;
        if (empty && output.pos == 0) return truncated(text, "zstd");
    }
    return (long)output.pos;
}

static bool begins_with(const char *bytes, size_t count, size_t offset, const char *magic,
                        size_t length) {
    return count >= offset + length && memcmp(bytes + offset, magic, length) == 0;
}

/* RFC 8878: a frame, or one to be skipped, whose lowest four bits are free. */
static bool is_zstd(const char *bytes, size_t count) {
    return begins_with(bytes, count, 0, "\x28\xB5\x2F\xFD", 4) ||
           (begins_with(bytes, count, 1, "\x2A\x4D\x18", 3) && (bytes[0] & 0xF0) == 0x50);
}

static int begin_reading(TextFile *text) {
    text->read = read_plain;
    if (refill(text)) return -1;
    if (is_zstd(text->input, text->end)) {
        text->read = read_zstd;
        text->zstd = ZSTD_createDStream();
        return text->zstd ? 0 : error_set("tokenize: %s: no memory for zstd", text->path);
    }
    if (begins_with(text->input, text->end, 0, "\x1F\x8B", 2)) {
        enum { GZIP_ONLY = 16 };
        text->read = read_gzip;
        text->gzip = calloc(1, sizeof *text->gzip);
        if (!text->gzip || inflateInit2(text->gzip, MAX_WBITS + GZIP_ONLY) != Z_OK)
            return error_set("tokenize: %s: no memory for gzip", text->path);
    }
    return 0;
}

/* ---- what is no text ---- */

static const struct {
    size_t offset, length;
    const char *magic, *name, *remedy; /* remedy: %s is the file */
} binaries[] = {
    {0, 4, "\xFF\xFE\0\0", "UTF-32", "; type: iconv -f UTF-32 -t UTF-8 '%s' >NEW"},
    {0, 4, "\0\0\xFE\xFF", "UTF-32", "; type: iconv -f UTF-32 -t UTF-8 '%s' >NEW"},
    {0, 2, "\xFF\xFE", "UTF-16", "; type: iconv -f UTF-16 -t UTF-8 '%s' >NEW"},
    {0, 2, "\xFE\xFF", "UTF-16", "; type: iconv -f UTF-16 -t UTF-8 '%s' >NEW"},
    {0, 4, "PAR1", "Parquet",
     "; type: pip install pandas pyarrow, then python3 -c \"import pandas; "
     "pandas.read_parquet('%s').to_json('NEW.jsonl', orient='records', lines=True)\""},
    {0, 6, "ARROW1", "Arrow", "; write it as JSON lines"},
    {0, 6,
     "\xFD"
     "7zXZ",
     "compressed by xz", "; type: xz -d '%s'"},
    {4, 6, "1AY&SY", "compressed by bzip2", "; type: bzip2 -d '%s'"},
    {0, 4, "PK\3\4", "a zip archive", "; type: unzip '%s'"},
    {257, 5, "ustar", "a tar archive", "; type: tar -xf '%s'"},
    {0, 4, "GGUF", "a model in GGUF", ", which has no text"},
    {0, 4, "\x89HDF", "HDF5", ""},
    {0, 5, "%PDF-", "PDF", "; type: pdftotext '%s'"},
};

static int refuse_binary(const TextFile *text) {
    for (size_t i = 0; i < sizeof binaries / sizeof *binaries; i++) {
        char remedy[PATH_BYTES + 256];
        if (!begins_with(text->head, text->head_end, binaries[i].offset, binaries[i].magic,
                         binaries[i].length))
            continue;
        snprintf(remedy, sizeof remedy, binaries[i].remedy, text->path);
        return error_set("tokenize: %s: is %s%s", text->path, binaries[i].name, remedy);
    }
    if (memchr(text->head, 0, text->head_end))
        return error_set("tokenize: %s: has a zero byte near its beginning; is it text in UTF-8?",
                         text->path);
    return 0;
}

/* Reads the beginning of the text and looks at it. */
static int look_at_head(TextFile *text) {
    long count = 1;
    while (text->head_end < HEAD_BYTES && count > 0) {
        count = text->read(text, text->head + text->head_end, HEAD_BYTES - text->head_end);
        if (count < 0) return -1;
        text->head_end += (size_t)count;
    }
    if (begins_with(text->head, text->head_end, 0, "\xEF\xBB\xBF", 3)) text->head_begin = 3;
    return refuse_binary(text);
}

/* ---- files ---- */

TextFile *textfile_of(FILE *file, const char *path) {
    TextFile *text = calloc(1, sizeof *text);
    if (!text) {
        fclose(file);
        return error_null("tokenize: %s: out of memory", path);
    }
    text->file = file;
    snprintf(text->path, sizeof text->path, "%s", path);
    if (begin_reading(text) == 0 && look_at_head(text) == 0) return text;
    textfile_close(text);
    return NULL;
}

TextFile *textfile_open(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file) return textfile_of(file, path);
    return error_null("tokenize: %s: %s", path, strerror(errno));
}

void textfile_close(TextFile *text) {
    if (!text) return;
    fclose(text->file);
    ZSTD_freeDStream(text->zstd);
    if (text->gzip) inflateEnd(text->gzip);
    free(text->gzip);
    free(text);
}

long textfile_read(TextFile *text, char *to, size_t size) {
    const size_t left = text->head_end - text->head_begin, count = left < size ? left : size;
    if (left == 0) return text->read(text, to, size);
    memcpy(to, text->head + text->head_begin, count);
    text->head_begin += count;
    return (long)count;
}

const char *textfile_path(const TextFile *text) { return text->path; }

uint64_t textfile_bytes_read(const TextFile *text) { return text->bytes_read; }
