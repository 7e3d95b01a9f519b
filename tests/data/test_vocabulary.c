/* The file of GPT-2's vocabulary: how it writes bytes and numbers tokens, and the errors of damaged
 * files. */
#include <stdio.h>
#include <string.h>

#include "../../data/file.h"
#include "../../data/tokenizer.h"
#include "scratch.h"
#include "tiny.h"

/* Returns the byte that the file writes as a character of `length` bytes; on failure -1, with the
 * error set. It reads a file that merges the character with an 'x'. */
static int byte_written_as(const char *character, size_t length) {
    char merges[64];
    const int header = snprintf(merges, sizeof merges, "#version: 0.2\n");
    memcpy(merges + header, character, length);
    strcpy(merges + header + length, " x\n");
    Tokenizer *tokenizer =
        tokenizer_gpt2_parse(merges, (size_t)header + length + strlen(" x\n"), "DIR");
    if (!tokenizer) return -1;
    size_t count;
    const char *bytes = tokenizer->decode(tokenizer, 256, &count);
    const int byte = count == 2 && bytes[1] == 'x' ? (unsigned char)bytes[0] : -2;
    tokenizer_free(tokenizer);
    return byte;
}

static void every_byte_has_its_character(void) {
    static const struct {
        int byte;
        const char *text;
    } known[] = {{'!', "!"},         {' ', "\xC4\xA0"},  {0, "\xC4\x80"},  {'\n', "\xC4\x8A"},
                 {0xAD, "\xC5\x83"}, {0xFF, "\xC3\xBF"}, {-1, " "},        {-1, "\xC4"},
                 {-1, "\xC5\x84"},   {-1, "\xFF"},       {-1, "\xC1\xA1"}, {-1, "\xE6\x97\xA5"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const int byte = byte_written_as(known[i].text, strlen(known[i].text));
        CHECK(byte == known[i].byte, "row %zu is byte %d", i, byte);
    }
    CHECK(byte_written_as("", 1) == -1 && byte_written_as("!", 2) == -1, "a zero byte passes");
    int times[256] = {0};
    for (unsigned code = 1; code < 0x200; code++) {
        char text[2];
        size_t length = 0;
        if (code >= 0x80) text[length++] = (char)(0xC0 | code >> 6);
        text[length++] = (char)(code < 0x80 ? code : 0x80 | (code & 0x3F));
        const int byte = byte_written_as(text, length);
        if (byte >= 0) times[byte]++;
        CHECK(byte >= -1, "character %u", code);
    }
    for (int byte = 0; byte < 256; byte++)
        CHECK(times[byte] == 1, "%d characters stand for byte %d", times[byte], byte);
}

/* Tokens are the bytes in the order of the characters that stand for them, then the merges, then
 * the end of text. */
static void tokens_are_numbered_as_in_gpt2(void) {
    static const struct {
        int token;
        const char *bytes;
    } known[] = {
        {0, "!"},      {93, "~"},   {94, "\xA1"},   {105, "\xAC"}, {106, "\xAE"},
        {187, "\xFF"}, {188, "\0"}, {220, " "},     {221, "\x7F"}, {255, "\xAD"},
        {256, "he"},   {260, " w"}, {265, "abcab"}, {277, "\n\n"}, {TINY_END, "<|endoftext|>"}};
    Tokenizer *tokenizer = tokenizer_gpt2_parse(tiny_merges(), strlen(tiny_merges()), "DIR");
    if (!CHECK(tokenizer, "%s", error_message())) return;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const size_t expected = known[i].bytes[0] ? strlen(known[i].bytes) : 1;
        size_t count;
        const char *bytes = tokenizer->decode(tokenizer, known[i].token, &count);
        CHECK(count == expected && memcmp(bytes, known[i].bytes, count) == 0, "token %d is %.*s",
              known[i].token, (int)count, bytes);
    }
    tokenizer_free(tokenizer);
}

/* Damage to the file: `from` is replaced by `to`. Where from is NULL, `to` replaces the whole
 * text. */
typedef struct {
    const char *what, *error;
    const char *from, *to;
} Damage;

#define NOT_TWO(line) "gpt2: DIR/vocab.bpe: line " #line " is not two known tokens; get it again"

static const Damage damages[] = {
    {"empty", "gpt2: DIR/vocab.bpe: does not begin with #version; get it again", NULL, ""},
    {"no version", "gpt2: DIR/vocab.bpe: does not begin with #version; get it again",
     "#version: 0.2\n", ""},
    {"one part", NOT_TWO(2), "h e\n", "he\n"},
    {"nothing before the space", NOT_TWO(2), "h e\n", " e\n"},
    {"nothing behind it", NOT_TWO(2), "h e\n", "h \n"},
    {"three parts", NOT_TWO(2), "h e\n", "h e l\n"},
    {"not in the alphabet", NOT_TWO(2), "h e\n", "h \x01\n"},
    {"unknown part", NOT_TWO(3), "l l\n", "l lx\n"},
    {"made only later", NOT_TWO(4), "he ll\n", "hell o\n"},
    {"empty line", NOT_TWO(4), "he ll\n", "\n"},
    {"repeated", "gpt2: DIR/vocab.bpe: line 3 repeats an earlier one; get it again", "l l\n",
     "h e\n"},
    {"the same token of other parts",
     "gpt2: DIR/vocab.bpe: line 6 repeats an earlier one; get it again", "hell o\n",
     "e ll\nh ell\n"},
    {"cut off", "gpt2: DIR/vocab.bpe: ends within line 23; get it again", "\xC4\x8A \xC4\x8A\n",
     "\xC4\x8A"},
    {"cut off in the first line", "gpt2: DIR/vocab.bpe: ends within line 1; get it again", NULL,
     "#version: 0.2"},
};

static void replace(char *text, size_t size, const char *from, const char *to) {
    char *at = strstr(text, from);
    if (!CHECK(at, "there is no %s", from)) return;
    char rest[512];
    snprintf(rest, sizeof rest, "%s", at + strlen(from));
    snprintf(at, size - (size_t)(at - text), "%s%s", to, rest);
}

static void check_damage(const void *row) {
    const Damage *damage = row;
    char merges[512];
    snprintf(merges, sizeof merges, "%s", tiny_merges());
    if (damage->from)
        replace(merges, sizeof merges, damage->from, damage->to);
    else
        strcpy(merges, damage->to);
    Tokenizer *tokenizer = tokenizer_gpt2_parse(merges, strlen(merges), "DIR");
    if (CHECK(!tokenizer, "it passes")) CHECK_ERROR("%s", damage->error);
    tokenizer_free(tokenizer);
}

static void missing_file(void) {
    char directory[600];
    snprintf(directory, sizeof directory, "%s", scratch_text("bpe/vocab.bpe", tiny_merges()));
    *strrchr(directory, '/') = 0;
    Tokenizer *tokenizer = tokenizer_gpt2(directory, 0);
    CHECK(tokenizer, "%s", error_message());
    tokenizer_free(tokenizer);
    *strrchr(directory, '/') = 0;
    CHECK(!tokenizer_gpt2(directory, 0), "opened");
    CHECK_ERROR(
        "gpt2: %s/vocab.bpe: No such file or directory; data/fetch gpt2 downloads it; "
        "BCD_DATA can name another directory",
        directory);
}

void test_data_vocabulary(void) {
    RUN(every_byte_has_its_character);
    RUN(tokens_are_numbered_as_in_gpt2);
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++)
        RUN_ROW(damages[i].what, check_damage, &damages[i]);
    RUN(missing_file);
}
