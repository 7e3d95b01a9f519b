/* Documents out of text and JSON, and token files made of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/documents.h"
#include "../../data/tokenize.h"
#include "../../data/tokens.h"
#include "scratch.h"
#include "tiny.h"

static Tokenizer *tiny(void) {
    return tokenizer_gpt2_parse(tiny_merges(), strlen(tiny_merges()), "DIR");
}

/* Returns all documents, each after a '|', for the caller to free; NULL on failure. */
static char *join(Documents *documents) {
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

static char *join_documents(const char *path) { return join(documents_open(path)); }

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

#define NOT_UTF8 "is not in UTF-8; convert the file first, for example with iconv"
#define PART \
    "has only a part of an object; write each object on one line, or all of them in an array"
#define NO_TEXT "has no string \"text\"; prompts and chats need --tokenizer with a model"

static const BadLine bad_lines[] = {
    {"not JSON", "text", "is not JSON"},
    {"cut off", "{\"text\": \"a", PART},
    {"an object in several lines", " {\r", PART},
    {"cut off after an object", "{\"a\": {}", "is not JSON"},
    {"Latin-1", "{\"text\": \"caf\xE9\"}", NOT_UTF8},
    {"more behind the object", "{\"text\": \"a\"} {\"text\": \"b\"}", "is not JSON"},
    {"half a surrogate pair", "{\"text\": \"\\ud83c\"}",
     "has half of a surrogate pair, which is no character; remove it"},
    {"the other half", "{\"text\": \"a\\\\\\uDC00b\"}",
     "has half of a surrogate pair, which is no character; remove it"},
    {"two first halves", "{\"text\": \"\\ud83c\\ud83c\"}",
     "has half of a surrogate pair, which is no character; remove it"},
    {"no text", "{\"txt\": \"a\"}", NO_TEXT},
    {"another case", "{\"Text\": \"a\"}", NO_TEXT},
    {"text is a number", "{\"text\": 3}", NO_TEXT},
    {"no object", "\"text\"", NO_TEXT},
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
    text[0] = '{'; /* with a [ it would be an array */
    text[DEPTH - 1] = '}';
    const char *path = scratch_file("deep.jsonl", text, DEPTH);
    CHECK(!join_documents(path), "it passes");
    CHECK_ERROR("tokenize: %s: line 1 is not JSON", path);
    free(text);
}

static void zero_byte_in_a_line(void) {
    char line[600];
    memset(line, ' ', sizeof line);
    memcpy(line, "{\"text\": \"a\"}", 13);
    line[590] = 0; /* near the beginning it would mean that the file is no text */
    const char *path = scratch_file("zero.jsonl", line, sizeof line);
    CHECK(!join_documents(path), "it passes");
    CHECK_ERROR("tokenize: %s: line 1 has a zero character; remove it", path);
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
        "e\xE2\x81\x9F  f\xE2\x80\xA8  g\xE2\x80\xA9  h\xE2\x80\xAF  i\t  j\r\n\nk   ";
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

/* JSON lines that are read in pieces of every size give the same documents. */
static void pieces_give_whole_lines(void) {
    static const char text[] =
        "{\"text\": \"hello world\"}\n{\"text\": \"a\"}\n\n{\"text\": \"b\"}";
    static const char *const documents_in_it[] = {"hello world", "a", "b"};
    const char *path = scratch_text("pieces.jsonl", text);
    for (size_t piece = 1; piece <= sizeof text; piece++) {
        Documents *documents = documents_of(pieces_of(textfile_open(path), true, piece));
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

/* Arrays of JSON, which are read in pieces of every size. */
static const struct {
    const char *what, *text, *documents, *error; /* error: NULL if there is none */
} arrays[] = {
    {"two elements", " \n[{\"text\": \"one, ]\"}, {\"m\": [{}, []],\n\"text\": \"two\"}]\n ",
     "|one, ]|two", NULL},
    {"quotes in strings", "[{\"text\": \"a\\\"],\"},{\"text\":\"\\\\\"}]", "|a\"],|\\", NULL},
    {"no elements", "[ ]", "", NULL},
    {"no end", "[{\"text\": \"a\"}, {\"text\": \"b\"}", NULL,
     "the array has no end; get the file again"},
    {"something behind it", "[{\"text\": \"a\"}]\n{", NULL,
     "something follows the end of the array"},
    {"an element is missing", "[{\"text\": \"a\"},]", NULL, "element 2 is not JSON"},
    {"an element is damaged", "[{\"text\": \"a\"}, {\"text\"}]", NULL, "element 2 is not JSON"},
    {"lines", "\n{\"text\": \"a\"}\n{\"text\": \"b\"}", "|a|b", NULL},
};

static void arrays_of_json(void) {
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        const char *path = scratch_text("array.json", arrays[i].text);
        for (size_t piece = 1; piece <= strlen(arrays[i].text); piece++) {
            char *joined = join(documents_of(pieces_of(textfile_open(path), true, piece)));
            if (arrays[i].error) {
                CHECK(!joined, "%s: it passes: %s", arrays[i].what, joined);
                CHECK_ERROR("tokenize: %s: %s", path, arrays[i].error);
            } else {
                CHECK(joined && strcmp(joined, arrays[i].documents) == 0, "%s: \"%s\"; error %s",
                      arrays[i].what, joined, error_message());
            }
            free(joined);
        }
    }
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
    const char *bad = scratch_text("bad.jsonl", "{\n");
    char absent[600], directory[600];
    snprintf(absent, sizeof absent, "%s", scratch_path("absent.txt"));
    snprintf(directory, sizeof directory, "%s", good);
    *strrchr(directory, '/') = 0;
    TokenizeStats stats;
    const Tokenizer *bytes = tokenizer_bytes();
    CHECK(tokenize_file(out, (const char *[]){good, bad}, 2, bytes, &stats, NULL, NULL) == -1,
          "bad");
    CHECK_ERROR("tokenize: %s: line 1 " PART, bad);
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
    const int failed =
        tokenize_encoded(scratch_path("encoded.tokens"), "hf:0123456789ab", from, 2, stats);
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
    CHECK(encoded("511\n", bytes, 12, &stats) && strstr(error_message(), "token 511"), "%s",
          error_message());
    CHECK(encoded("512\n", bytes, 0, &stats) && strstr(error_message(), "no text"), "%s",
          error_message());
}

void test_data_tokenize(void) {
    RUN(documents_by_hand);
    for (size_t i = 0; i < sizeof bad_lines / sizeof *bad_lines; i++)
        RUN_ROW(bad_lines[i].what, check_bad_line, &bad_lines[i]);
    RUN(nested_too_deep);
    RUN(zero_byte_in_a_line);
    RUN(end_of_text_stands_between_documents);
    RUN(pieces_give_the_tokens_of_the_whole);
    RUN(pieces_give_whole_lines);
    RUN(arrays_of_json);
    RUN(one_long_word);
    RUN(failures_leave_no_file);
    RUN(fed_to_another_program);
    RUN(encoded_elsewhere);
}
