/* What is UTF-8, and that all else is refused.  PCRE2 agrees on every first and second byte, with
 * each kind of byte behind them. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "../../data/documents.h"
#include "../../data/tokenize.h"
#include "../../data/utf8.h"
#include "scratch.h"

typedef struct {
    pcre2_code *code;
    pcre2_match_data *match;
} Judge;

static Judge judge_open(void) {
    int reason;
    PCRE2_SIZE where;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR) "", 0, PCRE2_UTF, &reason, &where, NULL);
    return (Judge){code, pcre2_match_data_create_from_pattern(code, NULL)};
}

static void judge_close(Judge *judge) {
    pcre2_match_data_free(judge->match);
    pcre2_code_free(judge->code);
}

static size_t judge_valid(const Judge *judge, const char *text, size_t bytes) {
    const int found = pcre2_match(judge->code, (PCRE2_SPTR)text, bytes, 0, 0, judge->match, NULL);
    return found < 0 ? pcre2_get_startchar(judge->match) : bytes;
}

/* The four bytes stand behind `before` letters, so that words of eight bytes begin anywhere. */
static void check_start(const Judge *judge, int first, int second, size_t before) {
    static const unsigned char kinds[] = {'a', 0x7F, 0x80, 0xBF, 0xC0, 0xFF};
    char text[24];
    memset(text, 'a', sizeof text);
    text[before] = (char)first;
    text[before + 1] = (char)second;
    for (size_t third = 0; third < sizeof kinds; third++)
        for (size_t fourth = 0; fourth < sizeof kinds; fourth++) {
            text[before + 2] = (char)kinds[third];
            text[before + 3] = (char)kinds[fourth];
            for (size_t bytes = before + 1; bytes <= before + 4; bytes++) {
                const size_t valid = utf8_valid(text, bytes),
                             expected = judge_valid(judge, text, bytes);
                CHECK(valid == expected, "%02x %02x %02x %02x, %zu bytes: %zu are valid, not %zu",
                      first, second, kinds[third], kinds[fourth], bytes, valid, expected);
            }
            CHECK(utf8_valid(text, sizeof text) == judge_valid(judge, text, sizeof text),
                  "%02x %02x in a longer text", first, second);
        }
}

static void the_same_bytes_as_pcre2(void) {
    Judge judge = judge_open();
    for (int first = 0; first < 256; first++)
        for (int second = 0; second < 256; second += first < 0xC0 && second < 0x70 ? 16 : 1)
            check_start(&judge, first, second, (size_t)(first + second) % 12);
    judge_close(&judge);
}

static void characters_by_hand(void) {
    static const struct {
        const char *text;
        size_t valid;
    } rows[] = {
        {"", 0},
        {"text, and more of it", 20},
        {"\xC3\xA9", 2},
        {"\xED\x9F\xBF\xEE\x80\x80", 6}, /* next to the halves of surrogate pairs */
        {"\xF4\x8F\xBF\xBF", 4},         /* the last character */
        {"a\xC0\x80", 1},                /* a longer form of zero */
        {"a\xED\xA0\x80", 1},            /* half of a surrogate pair */
        {"12345678\xF4\x90\x80\x80", 8}, /* above the last character */
        {"12345678 caf\xE9 and so on", 12},
        {"\xE6\x97", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const size_t valid = utf8_valid(rows[i].text, strlen(rows[i].text));
        CHECK(valid == rows[i].valid, "row %zu: %zu bytes are valid", i, valid);
    }
}

/* ---- files ---- */

#define LINE_3 \
    "tokenize: %s: line 3 is not in UTF-8; convert the file first, for example with iconv"

/* Pieces of every size break no character, and the line is named. */
static void text_is_read_as_far_as_it_is_utf8(void) {
    static const char text[] =
        "one caf\xC3\xA9 \xE6\x97\xA5\n\xE6\x9C\xAC \xF0\x9F\x8C\x8D\nthree ";
    char whole[64];
    snprintf(whole, sizeof whole, "%scaf\xE9\n", text);
    const char *path = scratch_text("latin1.txt", whole), *piece;
    for (size_t size = 1; size <= sizeof whole; size++) {
        Documents *documents = documents_of(pieces_of(textfile_open(path), false, size));
        size_t read = 0, bytes;
        bool starts;
        int found;
        while ((found = documents_next(documents, &piece, &bytes, &starts)) > 0) {
            CHECK(strncmp(piece, text + read, bytes) == 0, "pieces of %zu bytes", size);
            read += bytes;
        }
        CHECK(found == -1 && read < sizeof text, "pieces of %zu bytes: it passes", size);
        CHECK_ERROR(LINE_3, path);
        documents_close(documents);
    }
}

/* A zero is found wherever it is, here behind the beginning that is looked at first. */
static void text_has_no_zero_byte(void) {
    char text[1000];
    memset(text, 'a', sizeof text);
    text[600] = '\n';
    text[700] = 0;
    const char *path = scratch_file("zero.txt", text, sizeof text);
    TokenizeStats stats = {0};
    CHECK(tokenize_file(scratch_path("zero.tokens"), &path, 1, tokenizer_bytes(), &stats, NULL,
                        NULL) == -1,
          "it passes");
    CHECK_ERROR("tokenize: %s: line 2 has a zero byte; is it text?", path);
}

/* Every tokenizer gets text and records by one of these two. */
static void no_tokenizer_gets_anything_else(void) {
    static const char *const names[] = {"latin1.txt", "latin1.jsonl"};
    const char *out = scratch_path("latin1.tokens");
    for (int i = 0; i < 2; i++) {
        const char *path = scratch_text(names[i], "{\"text\": \"a\"}\n\n{\"text\": \"caf\xE9\"}\n");
        TokenizeStats stats = {0};
        CHECK(tokenize_file(out, &path, 1, tokenizer_bytes(), &stats, NULL, NULL) == -1,
              "it passes");
        CHECK_ERROR(LINE_3, path);
        FILE *to = tmpfile();
        CHECK(tokenize_feed(to, path, &stats, NULL, NULL) == -1, "it passes");
        CHECK_ERROR(LINE_3, path);
        fclose(to);
    }
}

void test_data_utf8(void) {
    RUN(characters_by_hand);
    RUN(the_same_bytes_as_pcre2);
    RUN(text_is_read_as_far_as_it_is_utf8);
    RUN(text_has_no_zero_byte);
    RUN(no_tokenizer_gets_anything_else);
}
