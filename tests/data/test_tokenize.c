/* Token files made of documents. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/data.h"
#include "../../data/documents.h"
#include "../../data/tokenize.h"
#include "../../data/tokens.h"
#include "scratch.h"
#include "tiny.h"

static Tokenizer *tiny(void) {
    return tokenizer_gpt2_parse(tiny_merges(), strlen(tiny_merges()), "DIR");
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
        "hello world  hello\n\nabcabc \n  hello   abc\n\nhello's\n\xC3\xA9\nhello \xC2\x8A\n\n "
        "\xE6\x97\xA5  hello\xC2\xA0  a\xC2\x85  b\xE3\x80\x80  c\xE2\x80\x83  d\xE2\x80\x8A  "
        "e\xE2\x81\x9F  f\xE2\x80\xA8  g\xE2\x80\xA9  h\xE2\x80\xAF  i\t  j\r\n\nk   "
        "\xE3\x80\x82\r\n<|endoftext|>\r\n <|endoftext|>  hello<|endoftext|><|endoftext|>";
    Tokenizer *tokenizer = tiny();
    int *whole = NULL, *tokens = NULL;
    size_t whole_count = 0, pieces = 0;
    CHECK(tokenizer->encode(tokenizer, text, sizeof text - 1, &whole, &whole_count) == 0, "%s",
          error_message());
    const char *path = scratch_text("pieces.txt", text);
    for (size_t piece = 1; piece < sizeof text; piece++) {
        Documents *documents = documents_of(pieces_of(textfile_open(path), false, piece));
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

/* Lines of Chinese or Japanese may have no blank; the last byte of their full stop also ends white
 * space (U+2002). */
static void lines_without_blanks(void) {
    static const char text[] = "\xE6\x97\xA5\xE3\x80\x82\r\n\xE6\x9C\xAC\xE3\x80\x82\r\n";
    const char *path = scratch_text("lines.txt", text);
    Documents *documents = documents_of(pieces_of(textfile_open(path), false, 1));
    const char *part;
    size_t bytes, pieces = 0;
    bool starts;
    while (documents_next(documents, &part, &bytes, &starts) > 0) pieces++;
    documents_close(documents);
    CHECK(pieces == 3, "%zu pieces", pieces);
}

/* In this text there is nearly no place to cut, so the buffer grows until there is one. */
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
    const char *bad = scratch_text("bad.jsonl", "text\n");
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

/* ---- tokens that another program makes ---- */

static void check_feed(const char *input, const char *expected) {
    char *fed = NULL;
    size_t length;
    TokenizeStats stats = {0};
    FILE *to = open_memstream(&fed, &length);
    CHECK(tokenize_feed(to, input, &stats, NULL, NULL) == 0, "%s", error_message());
    fclose(to);
    CHECK(strcmp(fed, expected) == 0, "\"%s\", expected \"%s\"", fed, expected);
    CHECK(stats.bytes_read > 0, "no bytes read");
    free(fed);
}

/* Each line gets its number, each element of an array becomes one line, and text is unchanged. */
static void fed_to_another_program(void) {
    check_feed(scratch_text("feed.txt", "\xEF\xBB\xBFone\r\n two"), "text\none\r\n two");
    check_feed(scratch_text("feed.jsonl", "{\"a\": 1}\n\n{\"b\": 2}"),
               "line\n1 {\"a\": 1}\n3 {\"b\": 2}\n");
    check_feed(scratch_text("feed.json", " [{\n\"a\": 1},\n3\n]\n"),
               "element\n1 { \"a\": 1}\n2  3 \n");
    TokenizeStats stats = {0};
    FILE *to = tmpfile();
    const char *half = scratch_text("half.json", "[{\"a\": \"\\ud83d\"}]");
    CHECK(tokenize_feed(to, half, &stats, NULL, NULL) == -1, "half of a pair passes");
    CHECK_ERROR(
        "tokenize: %s: element 1 has half of a surrogate pair, which is no character; "
        "remove it",
        half);
    int calls = 1;
    CHECK(tokenize_feed(to, scratch_text("feed.txt", "text"), &stats, stop_at_once, &calls) == 1,
          "not stopped");
    fclose(to);
}

/* Makes a token file from output like that of data/encode.py. */
static int encoded(const char *head, const void *bytes, size_t count, TokenizeStats *stats) {
    FILE *from[2];
    for (int i = 0; i < 2; i++) {
        from[i] = tmpfile();
        fputs(head, from[i]);
    }
    fwrite(bytes, 1, count, from[1]);
    const int failed = tokenize_encoded(scratch_path("encoded.tokens"), "hf:0123456789ab", from, 2,
                                        0, stats, NULL, NULL);
    for (int i = 0; i < 2; i++) fclose(from[i]);
    return failed;
}

static void encoded_elsewhere(void) {
    static const unsigned char bytes[] = {5, 0, 0, 0, 255, 1, 0, 0x80, 0, 0, 0, 0};
    TokenizeStats stats;
    Tokens tokens;
    CHECK(encoded("512 no end\n", bytes, 12, &stats) == 0, "%s", error_message());
    CHECK(stats.tokens == 3 && strcmp(stats.note, "no end") == 0, "%d tokens, note %s",
          (int)stats.tokens, stats.note);
    if (!CHECK(tokens_open(&tokens, scratch_path("encoded.tokens")) == 0, "%s", error_message()))
        return;
    CHECK(tokens.masked && tokens.vocabulary == 512 && tokens.count == 3, "another header");
    CHECK(strcmp(tokens.tokenizer, "hf:0123456789ab") == 0, "made by %s", tokens.tokenizer);
    CHECK(tokens_at(&tokens, 1) == 511 && !tokens_is_target(&tokens, 1), "the masked token");
    CHECK(tokens_at(&tokens, 0) == 5 && tokens_is_target(&tokens, 0), "the first token");
    tokens_free(&tokens);
    CHECK(encoded("512\n", bytes, 4, &stats) == 0 && !*stats.note, "%s", error_message());
    if (CHECK(tokens_open(&tokens, scratch_path("encoded.tokens")) == 0, "%s", error_message())) {
        CHECK(!tokens.masked, "masked without a mask");
        tokens_free(&tokens);
    }
    CHECK(encoded("", bytes, 0, &stats) && strstr(error_message(), "did not begin with the line"),
          "no head");
    CHECK(
        encoded("x\n", bytes, 12, &stats) && strstr(error_message(), "did not begin with the line"),
        "%s", error_message());
    CHECK(encoded("512\n", bytes, 11, &stats) && strstr(error_message(), "middle of a token"), "%s",
          error_message());
    CHECK(encoded("511\n", bytes, 12, &stats) == -1 && strstr(error_message(), "token 511"), "%s",
          error_message());
    CHECK(encoded("512\n", bytes, 0, &stats) && strstr(error_message(), "no text"), "%s",
          error_message());
}

/* A clone without Git LFS has a pointer in place of the tokenizer, whose name would be another. */
static void a_pointer_is_no_tokenizer(void) {
    char name[TOKENIZER_NAME], dir[600];
    const char *path = scratch_text("pointer/tokenizer.json",
                                    "version https://git-lfs.github.com/spec/v1\n"
                                    "oid sha256:0\nsize 2\n");
    snprintf(dir, sizeof dir, "%s", path);
    *strrchr(dir, '/') = 0;
    CHECK(tokenizer_of_model(name, dir) == -1, "it is named %s", name);
    CHECK_ERROR("%s: is a pointer of Git LFS, not the tokenizer; type: git lfs pull", path);
    scratch_text("pointer/tokenizer.json", "{}");
    CHECK(tokenizer_of_model(name, dir) == 0 && strncmp(name, "hf:", 3) == 0, "%s",
          error_message());
}

/* Records of 3, 3, 4, 1, 3 and 6 tokens in windows of 4, then one of 3 of another file.  -1 -
 * token: it does not count.  The second one and the last one would be cut; the fifth just fits, and
 * the long one cannot be kept whole.  The last window is filled, and followed. */
static void records_are_kept_whole(void) {
    enum { WINDOW = 4 };
    static const int lengths[] = {3, 3, 4, 1, 3, 6, 3};
    static const int expected[] = {10, 11, 12, -13, 20, 21, 22, -23, 30,  31, 32, 33, 40,  50, 51,
                                   52, 60, 61, 62,  63, 64, 65, -66, -66, 70, 71, 72, -73, -73};
    enum { COUNT = sizeof expected / sizeof *expected };
    FILE *from[2] = {tmpfile(), tmpfile()};
    TokenizeStats stats;
    Tokens tokens;
    for (int i = 0; i < 2; i++) fputs("512\n", from[i]);
    for (int r = 0; r < 7; r++)
        for (int i = 0; i < lengths[r]; i++) {
            unsigned char raw[4];
            little_endian_put(raw, 4, (uint64_t)(10 * (r + 1) + i) + (i ? 0 : 1u << 30));
            fwrite(raw, 1, 4, from[r == 6]);
        }
    const char *path = scratch_path("whole.tokens");
    int calls = 1;
    CHECK(tokenize_encoded(path, "hf:0123456789ab", from, 2, WINDOW, &stats, stop_at_once,
                           &calls) == 1 &&
              !file_exists(path),
          "not stopped");
    CHECK(tokenize_encoded(path, "hf:0123456789ab", from, 2, WINDOW, &stats, NULL, NULL) == 0, "%s",
          error_message());
    for (int i = 0; i < 2; i++) fclose(from[i]);
    if (!CHECK(tokens_open(&tokens, path) == 0, "%s", error_message())) return;
    CHECK(tokens.masked && tokens.context == WINDOW, "windows of %d", tokens.context);
    CHECK(tokens.count == COUNT && stats.tokens == COUNT, "%zu tokens", tokens.count);
    CHECK(stats.cut == 1, "%d records are cut", (int)stats.cut);
    for (size_t i = 0; i < COUNT && i < tokens.count; i++) {
        const int token = tokens_at(&tokens, i);
        CHECK((tokens_is_target(&tokens, i) ? token : -1 - token) == expected[i], "token %zu is %d",
              i, token);
    }
    tokens_free(&tokens);
    for (int context = 3; context <= 8; context++) {
        const DataRequest request = {.name = path, .context = context, .whole = true};
        Dataset *set = data_open(&request);
        CHECK((set != NULL) == (context % WINDOW == 0), "windows of %d", context);
        if (set)
            CHECK(set->samples == 28 / context, "%d samples of %d", set->samples, context);
        else
            CHECK_ERROR(
                "%s: its records are whole in windows of 4 tokens, and a context of %d would "
                "cut them",
                path, context);
        if (set) set->free(set);
    }
    /* The last tenth begins with a window. */
    Dataset *train = data_open(&(DataRequest){.name = path, .context = 4, .split = SPLIT_TRAIN});
    CHECK(train && train->samples == 6, "%d samples", train ? train->samples : 0);
    if (train) train->free(train);
}

void test_data_tokenize(void) {
    RUN(end_of_text_stands_between_documents);
    RUN(pieces_give_the_tokens_of_the_whole);
    RUN(lines_without_blanks);
    RUN(one_long_word);
    RUN(failures_leave_no_file);
    RUN(fed_to_another_program);
    RUN(encoded_elsewhere);
    RUN(records_are_kept_whole);
    RUN(a_pointer_is_no_tokenizer);
}
