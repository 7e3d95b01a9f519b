/* Documents out of text, JSON lines and zstd, and token files made of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "../../data/documents.h"
#include "../../data/tokenize.h"
#include "../../data/tokens.h"
#include "scratch.h"
#include "tiny.h"

static Tokenizer *tiny(void) {
    return tokenizer_gpt2_parse(tiny_merges(), strlen(tiny_merges()), "DIR");
}

/* Returns all documents of a file, each after a '|', for the caller to free; NULL on failure. */
static char *join_documents(const char *path) {
    Documents *documents = documents_open(path);
    if (!documents) return NULL;
    const char *text;
    char *joined = NULL;
    size_t bytes, length;
    bool starts;
    int found;
    FILE *out = open_memstream(&joined, &length);
    while ((found = documents_next(documents, &text, &bytes, &starts)) > 0) {
        if (starts) fputc('|', out);
        fwrite(text, 1, bytes, out);
    }
    fclose(out);
    documents_close(documents);
    if (found == 0) return joined;
    free(joined);
    return NULL;
}

static void check_documents(const char *path, const char *expected) {
    char *joined = join_documents(path);
    CHECK(joined && strcmp(joined, expected) == 0, "\"%s\", expected \"%s\"; error %s", joined,
          expected, error_message());
    free(joined);
}

static void documents_by_hand(void) {
    check_documents(scratch_text("a.txt", "one\ntwo\n"), "|one\ntwo\n");
    check_documents(scratch_text("a.jsonl", "{\"text\": \"one\"}\n{\"text\": \"two\\n\"}\n"),
                    "|one|two\n");
    check_documents(scratch_text("b.jsonl", "{\"text\": \"last line without its end\"}"),
                    "|last line without its end");
    check_documents(
        scratch_text("c.jsonl", "\n \r\n{\"n\": [1], \"text\": \"x\", \"m\": {}}\r\n\n"), "|x");
    check_documents(scratch_text("d.jsonl", "{\"text\": \"\"}\n{\"text\": \"y\"}\n"), "||y");
    check_documents(scratch_text("e.jsonl", "{\"text\": \"\\u00e9 \\ud83c\\udf0d \\\\u0000\"}\n"),
                    "|\xC3\xA9 \xF0\x9F\x8C\x8D \\u0000");
    check_documents(scratch_text("empty.jsonl", ""), "");
    check_documents(scratch_text("empty.txt", ""), "");
}

/* A line of JSON that is refused. */
typedef struct {
    const char *what, *line, *error;
} BadLine;

static const BadLine bad_lines[] = {
    {"not JSON", "text", "is not JSON"},
    {"cut off", "{\"text\": \"a", "is not JSON"},
    {"more behind the object", "{\"text\": \"a\"} {\"text\": \"b\"}", "is not JSON"},
    {"half a surrogate pair", "{\"text\": \"\\ud83c\"}", "is not JSON"},
    {"no text", "{\"txt\": \"a\"}", "has no string \"text\""},
    {"another case", "{\"Text\": \"a\"}", "has no string \"text\""},
    {"text is a number", "{\"text\": 3}", "has no string \"text\""},
    {"no object", "\"text\"", "has no string \"text\""},
    {"a zero character", "{\"text\": \"a\\u0000b\"}", "has a zero character; remove it"},
    {"a zero behind backslashes", "{\"text\": \"\\\\\\u0000b\"}",
     "has a zero character; remove it"},
};

static void check_bad_line(const void *row) {
    const BadLine *bad = row;
    char text[200];
    snprintf(text, sizeof text, "{\"text\": \"good\"}\n\n%s\n{\"text\": \"good\"}\n", bad->line);
    const char *path = scratch_text("bad.jsonl", text);
    char *joined = join_documents(path);
    if (CHECK(!joined, "it passes: %s", joined))
        CHECK_ERROR("tokenize: %s: line 3 %s", path, bad->error);
    free(joined);
}

static void nested_too_deep(void) {
    enum { DEPTH = 100000 };
    char *text = malloc(DEPTH + 1);
    memset(text, '[', DEPTH);
    const char *path = scratch_file("deep.jsonl", text, DEPTH);
    CHECK(!join_documents(path), "it passes");
    CHECK_ERROR("tokenize: %s: line 1 is not JSON", path);
    free(text);
}

static void zero_byte_in_a_line(void) {
    const char line[] = "{\"text\": \"a\"}\0more\n";
    const char *path = scratch_file("zero.jsonl", line, sizeof line - 1);
    CHECK(!join_documents(path), "it passes");
    CHECK_ERROR("tokenize: %s: line 1 has a zero character; remove it", path);
}

/* ---- zstd ---- */

/* Compresses text to two frames with checksums, as in concatenated files. */
static size_t compress_text(char *to, size_t size, const char *text) {
    const size_t length = strlen(text), half = length / 2;
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    size_t used = ZSTD_compress2(context, to, size, text, half);
    used += ZSTD_compress2(context, to + used, size - used, text + half, length - half);
    ZSTD_freeCCtx(context);
    return used;
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

static void zstd_is_decompressed(void) {
    enum { LENGTH = 3 << 20 }; /* longer than every buffer on the way */
    char *text = long_text(LENGTH), *compressed = malloc(2 * LENGTH),
         *expected = malloc(LENGTH + 2);
    const size_t size = compress_text(compressed, 2 * LENGTH, text);
    snprintf(expected, LENGTH + 2, "|%s", text);
    char *joined = join_documents(scratch_file("long.txt.zst", compressed, size));
    CHECK(joined && strcmp(joined, expected) == 0, "not the same text; error %s", error_message());
    free(joined);

    const char *cut = scratch_file("cut.txt.zst", compressed, size - 1);
    CHECK(!join_documents(cut), "a truncated file passes");
    CHECK_ERROR("tokenize: %s: truncated zstd; get it again", cut);
    const char *header = scratch_file("header.txt.zst", compressed, 5);
    CHECK(!join_documents(header), "a truncated header passes");
    CHECK_ERROR("tokenize: %s: truncated zstd; get it again", header);
    compressed[size / 4] ^= 0x10;
    CHECK(!join_documents(scratch_file("changed.txt.zst", compressed, size)),
          "a changed bit passes");
    CHECK(strstr(error_message(), "changed.txt.zst: damaged zstd: ") &&
              strstr(error_message(), "; get it again"),
          "error %s", error_message());
    free(expected);
    free(compressed);
    free(text);
}

/* ---- token files ---- */

static void check_tokens(const char *path, const int *expected, size_t count) {
    Tokens tokens;
    if (!CHECK(tokens_open(&tokens, path) == 0, "%s", error_message())) return;
    CHECK(tokens.count == count, "%zu tokens, expected %zu", tokens.count, count);
    for (size_t i = 0; i < count && i < tokens.count; i++)
        CHECK(tokens_at(&tokens, i) == expected[i], "token %zu is %d, expected %d", i,
              tokens_at(&tokens, i), expected[i]);
    tokens_free(&tokens);
}

static void end_of_text_stands_between_documents(void) {
    static const int expected[] = {259,      TINY_END, 256,           TINY_END, TINY_BYTE('x'),
                                   TINY_END, 257,      TINY_BYTE('l')};
    const char *inputs[] = {
        scratch_text("1.jsonl",
                     "{\"text\": \"\"}\n{\"text\": \"hello\"}\n{\"text\": \"\"}\n{\"text\": "
                     "\"he\"}\n"),
        scratch_text("2.txt", "x"), scratch_text("3.txt", ""), scratch_text("4.txt", "lll")};
    const char *out = scratch_path("documents.tokens");
    Tokenizer *tokenizer = tiny();
    TokenizeStats stats;
    CHECK(tokenize_file(out, inputs, 4, tokenizer, &stats, NULL, NULL) == 0, "%s", error_message());
    check_tokens(out, expected, sizeof expected / sizeof *expected);
    CHECK(stats.documents == 4, "%d documents", (int)stats.documents);
    CHECK(stats.tokens == 8, "%d tokens", (int)stats.tokens);
    CHECK(stats.text_bytes == 11, "%d bytes", (int)stats.text_bytes);
    CHECK(stats.bytes_read == stats.total_bytes && stats.total_bytes == 59 + 1 + 3,
          "%d of %d bytes", (int)stats.bytes_read, (int)stats.total_bytes);
    tokenizer_free(tokenizer);
}

/* Text with many kinds of white space, read in pieces of every size, gives the tokens of the whole.
 */
static void pieces_give_the_tokens_of_the_whole(void) {
    static const char text[] =
        "hello world  hello\n\nabcabc \n  hello   abc\n\nhello's\n\xC3\xA9\nhello \xFF\n\n "
        "\xE6\x97\xA5  hello\xC2\xA0  a\xC2\x85  b\xE3\x80\x80  c\xE2\x80\x83  d\xE2\x80\x8A  "
        "e\xE2\x81\x9F  f\xE2\x80\xA8  g\xE2\x80\xA9  h\xE2\x80\xAF  i\t  j\r\n\nk   ";
    Tokenizer *tokenizer = tiny();
    int *whole = NULL, *tokens = NULL;
    size_t whole_count = 0, pieces = 0;
    CHECK(tokenizer->encode(tokenizer, text, sizeof text - 1, &whole, &whole_count) == 0, "%s",
          error_message());
    const char *path = scratch_text("pieces.txt", text);
    for (size_t piece = 1; piece < sizeof text; piece++) {
        Documents *documents = documents_of(fopen(path, "rb"), path, false, piece);
        const char *part;
        size_t bytes, count = 0;
        bool starts;
        while (documents_next(documents, &part, &bytes, &starts) > 0) {
            CHECK(tokenizer->encode(tokenizer, part, bytes, &tokens, &count) == 0, "%s",
                  error_message());
            pieces++;
        }
        documents_close(documents);
        CHECK(count == whole_count && memcmp(tokens, whole, count * sizeof *tokens) == 0,
              "pieces of %zu bytes give other tokens", piece);
    }
    CHECK(pieces > 2 * sizeof text, "%zu pieces in all: hardly ever cut", pieces);
    free(tokens);
    free(whole);
    tokenizer_free(tokenizer);
}

/* JSON lines, read in pieces of every size, are the documents that they are. */
static void pieces_give_whole_lines(void) {
    static const char text[] =
        "{\"text\": \"hello world\"}\n{\"text\": \"a\"}\n\n{\"text\": \"b\"}";
    static const char *const documents_in_it[] = {"hello world", "a", "b"};
    const char *path = scratch_text("pieces.jsonl", text);
    for (size_t piece = 1; piece <= sizeof text; piece++) {
        Documents *documents = documents_of(fopen(path, "rb"), path, true, piece);
        const char *part;
        size_t bytes, count = 0;
        bool starts;
        while (documents_next(documents, &part, &bytes, &starts) > 0 && count < 3) {
            const char *wanted = documents_in_it[count++];
            CHECK(starts && bytes == strlen(wanted) && memcmp(part, wanted, bytes) == 0,
                  "pieces of %zu bytes: \"%.*s\", not \"%s\"", piece, (int)bytes, part, wanted);
        }
        documents_close(documents);
        CHECK(count == 3, "pieces of %zu bytes: %zu documents", piece, count);
    }
}

/* Text in which nearly nothing can be cut: the buffer grows until something can. */
static void one_long_word(void) {
    enum { LENGTH = 3 << 20 };
    char *text = malloc(LENGTH);
    memset(text, 'a', LENGTH);
    text[LENGTH - 10] = ' ';
    const char *input = scratch_file("word.txt", text, LENGTH), *out = scratch_path("word.tokens");
    Tokens tokens;
    TokenizeStats stats;
    CHECK(tokenize_file(out, &input, 1, tokenizer_bytes(), &stats, NULL, NULL) == 0, "%s",
          error_message());
    if (CHECK(tokens_open(&tokens, out) == 0, "%s", error_message())) {
        CHECK(tokens.count == LENGTH, "%zu tokens", tokens.count);
        CHECK(tokens_at(&tokens, LENGTH - 10) == ' ', "the space moved");
        tokens_free(&tokens);
    }
    free(text);
}

static int stop_at_once(void *context, const TokenizeStats *stats) {
    int *calls = context;
    return (*calls)++ > 0 || stats->tokens > 0;
}

static void failures_leave_no_file(void) {
    const char *good = scratch_text("good.txt", "hello"), *out = scratch_path("failed.tokens");
    const char *bad = scratch_text("bad.jsonl", "{\n");
    char absent[600], directory[600];
    snprintf(absent, sizeof absent, "%s", scratch_path("absent.txt"));
    snprintf(directory, sizeof directory, "%s", good);
    *strrchr(directory, '/') = 0;
    TokenizeStats stats;
    const Tokenizer *bytes = tokenizer_bytes();
    CHECK(tokenize_file(out, (const char *[]){good, bad}, 2, bytes, &stats, NULL, NULL) == -1,
          "bad");
    CHECK_ERROR("tokenize: %s: line 1 is not JSON", bad);
    CHECK(tokenize_file(out, (const char *[]){good, absent}, 2, bytes, &stats, NULL, NULL) == -1,
          "absent");
    CHECK_ERROR("tokenize: %s: No such file or directory", absent);
    CHECK(stats.tokens == 0, "the work began before all inputs were looked at");
    CHECK(tokenize_file(out, (const char *[]){directory}, 1, bytes, &stats, NULL, NULL) == -1,
          "dir");
    CHECK_ERROR("tokenize: %s: is a directory; name the files in it", directory);
    CHECK(tokenize_file(out, NULL, 0, bytes, &stats, NULL, NULL) == -1, "nothing");
    CHECK_ERROR("tokenize: %s: the inputs have no text", out);
    int calls = 0;
    CHECK(tokenize_file(out, &good, 1, bytes, &stats, stop_at_once, &calls) == 1, "not stopped");
    CHECK(calls == 1, "%d calls", calls);
    CHECK(!file_exists(out), "a file is left behind");
    char command[700];
    snprintf(command, sizeof command, "ls '%s' | grep -q 'tmp$'", directory);
    CHECK(system(command) != 0, "a temporary file is left behind");
}

/* Makes a token file from output like that of data/encode.py. */
static int encoded(const char *head, const void *bytes, size_t count, TokenizeStats *stats) {
    FILE *from = tmpfile();
    fputs(head, from);
    fwrite(bytes, 1, count, from);
    rewind(from);
    const int failed = tokenize_encoded(scratch_path("encoded.tokens"), from, stats);
    fclose(from);
    return failed;
}

static void encoded_elsewhere(void) {
    static const unsigned char bytes[] = {5, 0, 0, 0, 255, 1, 0, 0x80, 0, 0, 0, 0};
    TokenizeStats stats;
    Tokens tokens;
    CHECK(encoded("hf:0123456789ab 512 1\n", bytes, 12, &stats) == 0, "%s", error_message());
    CHECK(stats.tokens == 3, "%d tokens", (int)stats.tokens);
    if (!CHECK(tokens_open(&tokens, scratch_path("encoded.tokens")) == 0, "%s", error_message()))
        return;
    CHECK(tokens.masked && tokens.vocabulary == 512 && tokens.count == 3, "another header");
    CHECK(strcmp(tokens.tokenizer, "hf:0123456789ab") == 0, "made by %s", tokens.tokenizer);
    CHECK(tokens_at(&tokens, 1) == 511 && !tokens_is_target(&tokens, 1), "the masked token");
    CHECK(tokens_at(&tokens, 0) == 5 && tokens_is_target(&tokens, 0), "the first token");
    tokens_free(&tokens);
    CHECK(encoded("", bytes, 0, &stats) && strstr(error_message(), "did not begin with the line"),
          "no head");
    CHECK(encoded("x 512 2\n", bytes, 12, &stats) &&
              strstr(error_message(), "did not begin with the line"),
          "%s", error_message());
    CHECK(encoded("x 512 1\n", bytes, 11, &stats) && strstr(error_message(), "middle of a token"),
          "%s", error_message());
    CHECK(encoded("x 511 1\n", bytes, 12, &stats) && strstr(error_message(), "token 511"), "%s",
          error_message());
    CHECK(encoded("x 512 0\n", bytes, 12, &stats), "a mask where there is none");
    CHECK(encoded("x 512 1\n", bytes, 0, &stats) && strstr(error_message(), "no text"), "%s",
          error_message());
}

void test_data_tokenize(void) {
    RUN(documents_by_hand);
    for (size_t i = 0; i < sizeof bad_lines / sizeof *bad_lines; i++)
        RUN_ROW(bad_lines[i].what, check_bad_line, &bad_lines[i]);
    RUN(nested_too_deep);
    RUN(zero_byte_in_a_line);
    RUN(zstd_is_decompressed);
    RUN(end_of_text_stands_between_documents);
    RUN(pieces_give_the_tokens_of_the_whole);
    RUN(pieces_give_whole_lines);
    RUN(one_long_word);
    RUN(failures_leave_no_file);
    RUN(encoded_elsewhere);
}
