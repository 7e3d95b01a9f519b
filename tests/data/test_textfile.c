/* Files of text, plain and compressed, and files that are no text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "../../data/textfile.h"
#include "scratch.h"

/* Reads a whole file, at most `piece` bytes at a time, for the caller to free; NULL on failure. */
static char *read_text(const char *path, size_t piece, size_t *length) {
    TextFile *file = textfile_open(path);
    char *text = NULL, *part = malloc(piece);
    long count = file ? 1 : -1;
    FILE *out = open_memstream(&text, length);
    while (count > 0 && (count = textfile_read(file, part, piece)) > 0)
        fwrite(part, 1, (size_t)count, out);
    fclose(out);
    textfile_close(file);
    free(part);
    if (count == 0) return text;
    free(text);
    return NULL;
}

static char *long_text(size_t length) {
    char *text = malloc(length + 1);
    uint32_t random = 1;
    for (size_t i = 0; i < length; i++) {
        random = random * 1664525u + 1013904223u;
        text[i] = "hello world, abc  \n"[(random >> 16) % 19];
    }
    text[length] = 0;
    return text;
}

/* A format, and how its library compresses text in one part. */
typedef struct {
    const char *name;
    size_t (*compress)(char *to, size_t size, const char *text, size_t length);
} Format;

static size_t by_zstd(char *to, size_t size, const char *text, size_t length) {
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    const size_t used = ZSTD_compress2(context, to, size, text, length);
    ZSTD_freeCCtx(context);
    return used;
}

static size_t by_gzip(char *to, size_t size, const char *text, size_t length) {
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)text,
                       .avail_in = (uInt)length,
                       .next_out = (Bytef *)to,
                       .avail_out = (uInt)size};
    deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
    deflate(&stream, Z_FINISH);
    deflateEnd(&stream);
    return size - stream.avail_out;
}

static const Format formats[] = {{"zstd", by_zstd}, {"gzip", by_gzip}};

/* Two parts, as in concatenated files, are read when they are whole, cut off or damaged. */
static void is_decompressed(const void *row) {
    enum { LENGTH = 3 << 20 }; /* longer than every buffer of the reader */
    const Format *format = row;
    char *text = long_text(LENGTH), *compressed = malloc(2 * LENGTH);
    size_t size = format->compress(compressed, 2 * LENGTH, text, LENGTH / 2), length;
    size += format->compress(compressed + size, 2 * LENGTH - size, text + LENGTH / 2,
                             LENGTH - LENGTH / 2);
    for (size_t piece = 1000; piece < LENGTH * 2; piece *= 1000) {
        char *read = read_text(scratch_file("long.txt", compressed, size), piece, &length);
        CHECK(read && length == LENGTH && memcmp(read, text, LENGTH) == 0,
              "pieces of %zu: not the same text; error %s", piece, error_message());
        free(read);
    }
    if (format->compress == by_gzip) { /* gzip -d ignores the zeros that some tapes and disks add */
        memset(compressed + size, 0, 1 << 18);
        char *read =
            read_text(scratch_file("long.txt", compressed, size + (1 << 18)), 1000, &length);
        CHECK(read && length == LENGTH, "zeros at the end: %s", error_message());
        free(read);
    }
    const char *cut = scratch_file("cut.txt", compressed, size - 1);
    CHECK(!read_text(cut, 1000, &length), "a truncated file passes");
    CHECK_ERROR("tokenize: %s: truncated %s; get it again", cut, format->name);
    const char *header = scratch_file("header.txt", compressed, 5);
    CHECK(!read_text(header, 1000, &length), "a truncated header passes");
    CHECK_ERROR("tokenize: %s: truncated %s; get it again", header, format->name);
    compressed[size / 4] ^= 0x10;
    char expected[64];
    snprintf(expected, sizeof expected, "changed.txt: damaged %s: ", format->name);
    CHECK(!read_text(scratch_file("changed.txt", compressed, size), 1000, &length),
          "a changed bit passes");
    CHECK(strstr(error_message(), expected) && strstr(error_message(), "; get it again"),
          "error %s", error_message());
    free(compressed);
    free(text);
}

/* Tools write frames that readers skip before and between those of data (pzstd does). RFC 8878,
 * 3.1.2: a magic number whose lowest four bits are free, and the length. */
static void zstd_begins_with_a_skippable_frame(void) {
    for (int low = 0; low < 16; low += 5) {
        char bytes[200] = {(char)(0x50 | low), 0x2A, 0x4D, 0x18, 4, 0, 0, 0, 'a', 'b', 'c', 'd'};
        const size_t size = 12 + by_zstd(bytes + 12, sizeof bytes - 12, "text", 4);
        size_t length;
        char *read = read_text(scratch_file("skippable.txt.zst", bytes, size), 100, &length);
        CHECK(read && strcmp(read, "text") == 0, "\"%s\"; error %s", read, error_message());
        free(read);
    }
}

/* zstd --long=31 has a window of 2 GiB, which takes as much memory to read. */
static void zstd_with_a_long_window(void) {
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, 31);
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
    char bytes[200];
    ZSTD_inBuffer in = {"text", 4, 0};
    ZSTD_outBuffer out = {bytes, sizeof bytes, 0};
    /* A frame that is written in one call stores its size. */
    ZSTD_compressStream2(context, &out, &in, ZSTD_e_flush);
    ZSTD_compressStream2(context, &out, &in, ZSTD_e_end);
    ZSTD_freeCCtx(context);
    const char *path = scratch_file("window.txt.zst", bytes, out.pos);
    size_t length;
    CHECK(!read_text(path, 100, &length), "it is read");
    CHECK_ERROR(
        "tokenize: %s: this zstd needs more than 128 MB of memory; type: zstd -d --long=31 '%s'",
        path, path);
}

/* What cannot be read must not count as the end of a text. */
static void what_cannot_be_read(void) {
    char directory[600];
    snprintf(directory, sizeof directory, "%s", scratch_path("folder/x"));
    *strrchr(directory, '/') = 0;
    size_t length;
    CHECK(!read_text(directory, 100, &length), "a directory is read");
    CHECK_ERROR("tokenize: %s: cannot read: Is a directory", directory);
}

/* The beginning of a file, and the error for it. */
static const struct {
    const char *what;
    size_t count;
    const char *bytes, *error;
} binaries[] = {
    {"UTF-16, little-endian", 6, "\xFF\xFEh\0i\0", "is UTF-16; type: iconv -f UTF-16 -t UTF-8 '"},
    {"UTF-16, big-endian", 6, "\xFE\xFF\0h\0i", "is UTF-16; type: iconv -f UTF-16 -t UTF-8 '"},
    {"UTF-32", 8, "\xFF\xFE\0\0h\0\0\0", "is UTF-32; type: iconv -f UTF-32 -t UTF-8 '"},
    {"UTF-16 without a mark", 4, "h\0i\0",
     "has a zero byte near its beginning; is it text in UTF-8?"},
    {"Parquet", 8, "PAR1\x15\x04\x15\x10", "is Parquet; type: pip install pandas pyarrow"},
    {"xz", 8, "\xFD\x37zXZ\0\0\4", "is compressed by xz; type: xz -d '"},
    {"bzip2", 12, "BZh91AY&SY\1\2", "is compressed by bzip2; type: bzip2 -d '"},
    {"zip", 8, "PK\3\4\x14\0\0\0", "is a zip archive; type: unzip '"},
    {"GGUF", 8, "GGUF\3\0\0\0", "is a model in GGUF, which has no text"},
};

static void what_is_no_text(void) {
    for (size_t i = 0; i < sizeof binaries / sizeof *binaries; i++) {
        const char *path = scratch_file("binary.txt", binaries[i].bytes, binaries[i].count);
        size_t length;
        char *read = read_text(path, 100, &length);
        CHECK(!read && strstr(error_message(), binaries[i].error) &&
                  strstr(error_message(), "binary.txt: "),
              "%s: \"%s\"", binaries[i].what, error_message());
        free(read);
    }
}

/* An archive is recognised inside of compressed files too. */
static void an_archive_in_gzip(void) {
    char tar[1024] = "name", bytes[1024];
    size_t length;
    memcpy(tar + 257, "ustar", 5);
    const size_t size = by_gzip(bytes, sizeof bytes, tar, sizeof tar);
    const char *path = scratch_file("archive.txt.gz", bytes, size);
    CHECK(!read_text(path, 100, &length), "it is read");
    CHECK_ERROR("tokenize: %s: is a tar archive; type: tar -xf '%s'", path, path);
}

static void bytes_as_they_are(void) {
    static const struct {
        const char *bytes, *text;
    } files[] = {{"a\r\nb\rc\n", "a\r\nb\rc\n"},     /* line ends are kept */
                 {"\xEF\xBB\xBFtext", "text"},       /* a byte order mark is not part of the text */
                 {"a\xEF\xBB\xBF", "a\xEF\xBB\xBF"}, /* elsewhere it is a character */
                 {"\xEF\xBB", "\xEF\xBB"},
                 {"", ""}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        size_t length;
        char *read = read_text(scratch_text("plain.txt", files[i].bytes), 1 + i, &length);
        CHECK(read && strcmp(read, files[i].text) == 0, "\"%s\"", read);
        free(read);
    }
}

void test_data_textfile(void) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        RUN_ROW(formats[i].name, is_decompressed, &formats[i]);
    RUN(zstd_begins_with_a_skippable_frame);
    RUN(zstd_with_a_long_window);
    RUN(what_cannot_be_read);
    RUN(what_is_no_text);
    RUN(an_archive_in_gzip);
    RUN(bytes_as_they_are);
}
