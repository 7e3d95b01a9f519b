/* Documents out of text and JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/documents.h"
#include "scratch.h"

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
    {"a comma behind it", "{\"text\": \"a\"}, \r",
     "has a comma behind the object; remove it, or write all objects in an array"},
    {"a part that ends in a comma", "{\"a\": {\"b\": 1},", PART},
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
    {"two texts", "{\"text\": \"a\", \"text\": \"b\"}", "has \"text\" twice"},
    {"another case", "{\"Text\": \"a\"}", NO_TEXT},
    {"text is a number", "{\"text\": 3}", NO_TEXT},
    {"no object", "\"text\"", NO_TEXT},
    {"a tab in a string", "{\"a\": \"\\\"\", \"text\": \"a\tb\"}",
     "has a control character in a string; JSON writes it as \\n or \\u000a"},
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

/* The names that say what a file has, and one that does not. */
static void names_of_json(void) {
    static const char *const names[] = {"a.JSONL",   "b.jsonl.zstd", "c.jsonlines",
                                        "d.jl.GZIP", "e.Ndjson.gz",  "f.json.zst"};
    static const char *const others[] = {"part-00000", "a.jsonl.txt", "json", "b.jsonl~"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check_documents(scratch_text(names[i], "{\"text\": \"one\"}"), "|one");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const char *path = scratch_text(others[i], "{\"text\": \"one\"} \r\n{}");
        CHECK(!join_documents(path), "%s passes", others[i]);
        CHECK_ERROR(
            "tokenize: %s: looks like JSON lines; give it a name that ends in .jsonl, or if it is "
            "text an empty line at its beginning",
            path);
    }
}

/* Text may have objects, but not as its first line. */
static void text_with_braces(void) {
    static const char *const texts[] = {"\n{\"a\": 1}\n", "{}", "{\"a\": 1} is JSON\n", "{ a }\n",
                                        "{\"a\": 1\n}\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char expected[40];
        snprintf(expected, sizeof expected, "|%s", texts[i]);
        check_documents(scratch_text("braces.txt", texts[i]), expected);
    }
}

void test_data_documents(void) {
    RUN(documents_by_hand);
    for (size_t i = 0; i < sizeof bad_lines / sizeof *bad_lines; i++)
        RUN_ROW(bad_lines[i].what, check_bad_line, &bad_lines[i]);
    RUN(nested_too_deep);
    RUN(zero_byte_in_a_line);
    RUN(pieces_give_whole_lines);
    RUN(arrays_of_json);
    RUN(names_of_json);
    RUN(text_with_braces);
}
