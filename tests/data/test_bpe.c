/* GPT-2's tokenizer: with a tiny vocabulary whose tokens are worked out by hand, and with the real
 * one, if it is there, against published tokens. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/file.h"
#include "../../data/pretoken.h"
#include "../../data/tokenizer.h"
#include "../../ref/base/checksum.h"
#include "scratch.h"
#include "tiny.h"

static Tokenizer *parse(const char *merges) {
    return tokenizer_gpt2_parse(merges, strlen(merges), "DIR");
}

/* Tables have each token plus 1, so that they can end with 0. */
#define T(token) ((token) + 1)
enum { MAX_TOKENS = 40 };

typedef struct {
    const char *text;
    int tokens[MAX_TOKENS];
} Known;

static void check_known(const Tokenizer *tokenizer, const Known *known) {
    size_t count = 0, expected = 0;
    int *tokens = NULL;
    while (known->tokens[expected]) expected++;
    CHECK(tokenizer->encode(tokenizer, known->text, strlen(known->text), &tokens, &count) == 0,
          "%s", error_message());
    CHECK(count == expected, "\"%s\": %zu tokens, expected %zu", known->text, count, expected);
    for (size_t i = 0; i < count && i < expected; i++)
        CHECK(tokens[i] == known->tokens[i] - 1, "\"%s\": token %zu is %d, expected %d",
              known->text, i, tokens[i], known->tokens[i] - 1);
    free(tokens);
}

static void merges_by_hand(void) {
    /* A space belongs to the word after it; \xC3\xA9 is one letter. */
    static const Known known[] = {
        {"", {0}},
        {"hello", {T(259)}},
        {"hell", {T(258)}},
        {"helo", {T(256), T(TINY_BYTE('l')), T(TINY_BYTE('o'))}},
        {"hello world", {T(259), T(260), T(262), T(TINY_BYTE('d'))}},
        {"hello  world", {T(259), T(TINY_BLANK), T(260), T(262), T(TINY_BYTE('d'))}},
        {"ahe", {T(TINY_BYTE('a')), T(256)}},
        {"lll", {T(257), T(TINY_BYTE('l'))}},
        {"llll", {T(257), T(257)}},
        {"h\xC3\xA9", {T(TINY_BYTE('h')), T(266)}},
        /* Both pairs (ab, c) merge before (abc, ab), whose rank is higher. */
        {"abcabc", {T(264), T(264)}},
        {"abcab", {T(265)}},
        {"<|e", {T(TINY_BYTE('<')), T(TINY_BYTE('|')), T(TINY_BYTE('e'))}},
        /* As in transformers, written out it is the end token, and blanks around it stay. */
        {"<|endoftext|>", {T(TINY_END)}},
        {"<<|endoftext|>", {T(TINY_BYTE('<')), T(TINY_END)}},
        {"he <|endoftext|> world<|endoftext|>",
         {T(256), T(TINY_BLANK), T(TINY_END), T(260), T(262), T(TINY_BYTE('d')), T(TINY_END)}},
    };
    Tokenizer *tokenizer = parse(tiny_merges());
    if (!CHECK(tokenizer, "%s", error_message())) return;
    CHECK(tokenizer->vocabulary == TINY_END + 1, "vocabulary %d", tokenizer->vocabulary);
    CHECK(tokenizer->end_of_text == TINY_END, "end of text %d", tokenizer->end_of_text);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) check_known(tokenizer, &known[i]);
    tokenizer_free(tokenizer);
}

static void tokens_are_appended(void) {
    Tokenizer *tokenizer = parse(tiny_merges());
    int *tokens = malloc(2 * sizeof *tokens);
    size_t count = 2;
    tokens[0] = 11;
    tokens[1] = 22;
    CHECK(tokenizer->encode(tokenizer, "hello", 5, &tokens, &count) == 0, "%s", error_message());
    CHECK(count == 3 && tokens[0] == 11 && tokens[1] == 22 && tokens[2] == 259, "not appended");
    free(tokens);
    tokenizer_free(tokenizer);
}

static void check_inverse(const Tokenizer *tokenizer, const char *text, size_t bytes) {
    int *tokens = NULL;
    size_t count = 0, done = 0, length;
    CHECK(tokenizer->encode(tokenizer, text, bytes, &tokens, &count) == 0, "%s", error_message());
    for (size_t i = 0; i < count; i++, done += length) {
        const char *piece = tokenizer->decode(tokenizer, tokens[i], &length);
        if (!CHECK(length <= bytes - done && memcmp(piece, text + done, length) == 0,
                   "token %zu, %d, does not give the bytes at %zu", i, tokens[i], done))
            break;
    }
    CHECK(done == bytes, "%zu bytes of %zu come back", done, bytes);
    free(tokens);
}

/* Every byte occurs twice, so that there is every kind of invalid UTF-8. */
static void decoding_gives_back_any_bytes(void) {
    char text[600];
    Tokenizer *tokenizer = parse(tiny_merges());
    for (int i = 0; i < 256; i++) text[i] = text[511 - i] = (char)i;
    memcpy(text + 512, "\xE2\x82 \xE2\x82\xAC \xF4\x90\x80\x80 \xED\xA0\x80 \xC0\x80", 19);
    check_inverse(tokenizer, text, 512 + 19);
    tokenizer_free(tokenizer);
    tokenizer = tokenizer_bytes();
    check_inverse(tokenizer, text, 512 + 19);
    CHECK(tokenizer->vocabulary == 256 && tokenizer->end_of_text == -1, "the byte tokenizer");
    tokenizer_free(tokenizer);
}

static void tokens_out_of_range_decode_to_nothing(void) {
    Tokenizer *both[] = {parse(tiny_merges()), tokenizer_bytes()};
    for (int i = 0; i < 2; i++) {
        size_t bytes = 9;
        both[i]->decode(both[i], -1, &bytes);
        CHECK(bytes == 0, "%s: -1 has %zu bytes", both[i]->name, bytes);
        bytes = 9;
        both[i]->decode(both[i], both[i]->vocabulary, &bytes);
        CHECK(bytes == 0, "%s: one too many has %zu bytes", both[i]->name, bytes);
        tokenizer_free(both[i]);
    }
}

static void long_words(void) {
    enum { LENGTH = 20000 };
    Tokenizer *tokenizer = parse(tiny_merges());
    char *text = malloc(LENGTH);
    for (int i = 0; i < LENGTH; i++) text[i] = "hello"[i % 5];
    int *tokens = NULL;
    size_t count = 0;
    CHECK(tokenizer->encode(tokenizer, text, LENGTH, &tokens, &count) == 0, "%s", error_message());
    CHECK(count == LENGTH / 5, "%zu tokens", count);
    for (size_t i = 0; i < count; i++) CHECK(tokens[i] == 259, "token %zu is %d", i, tokens[i]);
    free(tokens);
    free(text);
    tokenizer_free(tokenizer);
}

/* ---- words ---- */

static void note_word(void *context, const char *word, size_t bytes) {
    char *noted = context;
    strncat(noted, word, bytes);
    strcat(noted, "|");
}

static void words_by_hand(void) {
    static const char *const rows[][2] = {
        {"", ""},
        {"a bc", "a| bc|"},
        {"a  bc", "a| | bc|"},
        {"a   ", "a|   |"},
        {"a \n b", "a| \n| b|"},
        {"a\nb", "a|\n|b|"},
        {"a\n\nb", "a|\n|\n|b|"},
        {"it's we'll I'd'x", "it|'s| we|'ll| I|'d|'|x|"},
        {"'S 'sa", "'|S| '|sa|"}, /* 'S is no contraction, and takes no space */
        {"x12y", "x|12|y|"},
        {"a!? b", "a|!?| b|"},
        {"\xC3\xA9t\xC3\xA9", "\xC3\xA9t\xC3\xA9|"},
        {"a\xC2\xB2", "a|\xC2\xB2|"}, /* superscript two is a number */
        {"a\xC2\xA0"
         "b",
         "a|\xC2\xA0|b|"}, /* no-break space is a space */
        {"a\xE1\xA0\x8E"
         "b",
         "a|\xE1\xA0\x8E|b|"},                  /* U+180E is no space but a sign */
        {"  \xE1\xA0\x8E", " | \xE1\xA0\x8E|"}, /* so it takes the space before it */
        {"!\xE1\xA0\x8E", "!\xE1\xA0\x8E|"},
        {" \x1C", " \x1C|"},          /* nor is the file separator a space */
        {"a\xCC\x81", "a|\xCC\x81|"}, /* a combining accent is no letter */
        {"\xE6\x97\xA5\xE6\x9C\xAC \xF0\x9F\x8C\x8D",
         "\xE6\x97\xA5\xE6\x9C\xAC| \xF0\x9F\x8C\x8D|"},
        {"a\xFF\xFE"
         "b",
         "a|\xFF\xFE|b|"}, /* stray bytes are signs */
        {" \xE2\x82", " \xE2\x82|"},
    };
    Pretokenizer *pretokenizer = pretokenizer_create();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char words[100] = "";
        CHECK(pretokenize(pretokenizer, rows[i][0], strlen(rows[i][0]), note_word, words) == 0,
              "%s", error_message());
        CHECK(strcmp(words, rows[i][1]) == 0, "\"%s\" gives %s, expected %s", rows[i][0], words,
              rows[i][1]);
    }
    pretokenizer_free(pretokenizer);
}

/* Letters of two to four bytes, and what is not UTF-8 (Unicode standard, table 3-7): bytes alone,
 * characters that are cut off or overlong, surrogates, and what is above U+10FFFF. */
static void invalid_bytes_are_signs(void) {
    static const struct {
        const char *text;
        bool letter;
    } rows[] = {{"\xC3\xA9", true},
                {"\xE6\x97\xA5", true},
                {"\xF0\x90\x90\x80", true},
                {"\x80", false},
                {"\xA1", false},
                {"\xC1\xA1", false},
                {"\xC3", false},
                {"\xC3\xC3", false},
                {"\xE0\x83\xA9", false},
                {"\xE6\x97", false},
                {"\xED\xA0\x80", false},
                {"\xF0\x86\x97\xA5", false},
                {"\xF0\x90\x90", false},
                {"\xF4\x90\x80\x80", false},
                {"\xF5\x80\x80\x80", false},
                {"\xF8\x88\x80\x80\x80", false},
                {"\xFE\xA9\xC3\xFF", false},
                {"\xFF", false}};
    Pretokenizer *pretokenizer = pretokenizer_create();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[32], words[40] = "", expected[40];
        snprintf(text, sizeof text, "\xC3\xA9%s\xC3\xA9", rows[i].text);
        snprintf(expected, sizeof expected,
                 rows[i].letter ? "\xC3\xA9%s\xC3\xA9|" : "\xC3\xA9|%s|\xC3\xA9|", rows[i].text);
        CHECK(pretokenize(pretokenizer, text, strlen(text), note_word, words) == 0, "%s",
              error_message());
        CHECK(strcmp(words, expected) == 0, "row %zu gives %s", i, words);
    }
    pretokenizer_free(pretokenizer);
}

/* ---- the real vocabulary ---- */

static Tokenizer *open_real(void) {
    char directory[1024];
    snprintf(directory, sizeof directory, "%s", real_file("gpt2-bpe/vocab.bpe"));
    *strrchr(directory, '/') = 0;
    Tokenizer *tokenizer = tokenizer_gpt2(directory, 0);
    CHECK(tokenizer, "%s", error_message());
    return tokenizer;
}

/* Token numbers that the encoders' own documentation and tests print. */
static void published_numbers(void) {
    static const Known known[] = {
        {"Hello world", {T(15496), T(995)}},
        {" Hello world", {T(18435), T(995)}},
        {"hello world", {T(31373), T(995)}},
        {"", {0}},
        {" ", {T(220)}},
        {"\t", {T(197)}},
        {"This is some text", {T(1212), T(318), T(617), T(2420)}},
        {"indivisible", {T(521), T(452), T(12843)}},
        {"hello \xF0\x9F\x91\x8B world \xF0\x9F\x8C\x8D",
         {T(31373), T(50169), T(233), T(995), T(12520), T(234), T(235)}},
        {"0", {T(15)}},
        {"00", {T(405)}},
        {"000", {T(830)}},
        {"0000", {T(2388)}},
        {"00000", {T(20483)}},
        {"000000", {T(10535)}},
        {"0000000", {T(24598)}},
        {"00000000", {T(8269)}},
        {"000000000", {T(10535), T(830)}},
        {"0000000000", {T(8269), T(405)}},
        {"00000000000", {T(8269), T(830)}},
        {"000000000000", {T(8269), T(2388)}},
        {"0000000000000", {T(8269), T(20483)}},
        {"00000000000000", {T(8269), T(10535)}},
        {"000000000000000", {T(8269), T(24598)}},
        {"0000000000000000", {T(25645)}},
        {"00000000000000000", {T(8269), T(10535), T(830)}},
    };
    SKIP_WITHOUT("gpt2-bpe/vocab.bpe");
    Tokenizer *tokenizer = open_real();
    if (!tokenizer) return;
    CHECK(tokenizer->vocabulary == 50257, "vocabulary %d", tokenizer->vocabulary);
    CHECK(tokenizer->end_of_text == 50256, "end of text %d", tokenizer->end_of_text);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) check_known(tokenizer, &known[i]);
    tokenizer_free(tokenizer);
}

/* Count and checksum of all tokens as the published algorithm gives them, run in Python with the
 * `regex` module, version 2026.5.9, over the same files. */
static void check_wikitext2(const char *name, size_t expected, uint64_t expected_sum) {
    SKIP_WITHOUT("gpt2-bpe/vocab.bpe");
    SKIP_WITHOUT(name);
    size_t bytes, count = 0;
    int *tokens = NULL;
    Tokenizer *tokenizer = open_real();
    char *text = (char *)file_read("test", real_file(name), "", &bytes);
    if (!tokenizer || !text) return;
    CHECK(tokenizer->encode(tokenizer, text, bytes, &tokens, &count) == 0, "%s", error_message());
    uint64_t sum = CHECKSUM_START;
    for (size_t i = 0; i < count; i++) sum = checksum_add(sum, (uint64_t)tokens[i]);
    CHECK(count == expected, "%zu tokens, expected %zu", count, expected);
    CHECK(sum == expected_sum, "checksum %016llx", (unsigned long long)sum);
    check_inverse(tokenizer, text, bytes);
    free(text);
    free(tokens);
    tokenizer_free(tokenizer);
}

static void wikitext2_train(void) {
    check_wikitext2("wikitext-2/train.txt", 2448382, 0x6B3470A4C72DFBBE);
}
static void wikitext2_valid(void) {
    check_wikitext2("wikitext-2/valid.txt", 258659, 0x401EAB52E6652DD1);
}
static void wikitext2_test(void) {
    check_wikitext2("wikitext-2/test.txt", 295877, 0xEEB9B6A7C5C7DF94);
}

void test_data_bpe(void) {
    RUN(merges_by_hand);
    RUN(tokens_are_appended);
    RUN(decoding_gives_back_any_bytes);
    RUN(tokens_out_of_range_decode_to_nothing);
    RUN(long_words);
    RUN(words_by_hand);
    RUN(invalid_bytes_are_signs);
    RUN(published_numbers);
    RUN(wikitext2_train);
    RUN(wikitext2_valid);
    RUN(wikitext2_test);
}
