/* The files of GPT-2's vocabulary: how they write bytes, and the errors of damaged files. */
#include <stdio.h>
#include <string.h>

#include "../../data/file.h"
#include "../../data/tokenizer.h"
#include "../../data/vocabulary.h"
#include "scratch.h"
#include "tiny.h"

static void every_byte_has_its_character(void) {
    static const struct {
        unsigned char byte;
        const char *text;
    } known[] = {{'!', "!"},         {' ', "\xC4\xA0"},  {0, "\xC4\x80"},
                 {'\n', "\xC4\x8A"}, {0xAD, "\xC5\x83"}, {0xFF, "\xC3\xBF"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char text[3];
        bytemap_encode(text, known[i].byte);
        CHECK(strcmp(text, known[i].text) == 0, "byte %d is %s", known[i].byte, text);
    }
    for (int byte = 0; byte < 256; byte++) {
        char text[3], back[3];
        bytemap_encode(text, (unsigned char)byte);
        CHECK(bytemap_decode(back, text, strlen(text)) == 1 && (unsigned char)back[0] == byte,
              "byte %d does not come back", byte);
    }
    char bytes[8];
    CHECK(bytemap_decode(bytes, " ", 1) == -1, "a space itself stands for no byte");
    CHECK(bytemap_decode(bytes, "\xC4", 1) == -1, "half a character");
    CHECK(bytemap_decode(bytes, "\xC5\x84", 2) == -1, "one beyond the last");
    CHECK(bytemap_decode(bytes, "\xE6\x97\xA5", 3) == -1, "a character of three bytes");
}

/* Damage to one of the two files: `from` is replaced by `to`; with from NULL the whole text is. */
typedef struct {
    const char *what, *error;
    bool merges;
    const char *from, *to;
} Damage;

static const Damage damages[] = {
    {"no JSON", "gpt2: DIR/encoder.json: not a JSON object of tokens; get it again", false, NULL,
     "{\"!\": 0"},
    {"empty", "gpt2: DIR/encoder.json: not a JSON object of tokens; get it again", false, NULL, ""},
    {"empty object", "gpt2: DIR/encoder.json: not a JSON object of tokens; get it again", false,
     NULL, "{}"},
    {"a list", "gpt2: DIR/encoder.json: not a JSON object of tokens; get it again", false, NULL,
     "[1, 2]"},
    {"number too large", "gpt2: DIR/encoder.json: \"he\" has no number from 0 to 278; get it again",
     false, "\"he\": 256", "\"he\": 279"},
    {"number not whole", "gpt2: DIR/encoder.json: \"he\" has no number from 0 to 278; get it again",
     false, "\"he\": 256", "\"he\": 25.6"},
    {"no number", "gpt2: DIR/encoder.json: \"he\" has no number from 0 to 278; get it again", false,
     "\"he\": 256", "\"he\": \"256\""},
    {"number twice",
     "gpt2: DIR/encoder.json: \"he\" and \"ll\" have the same number 256; get it again", false,
     "\"ll\": 257", "\"ll\": 256"},
    {"token twice", "gpt2: DIR/encoder.json: \"ll\" appears twice; get it again", false, "\"he\"",
     "\"ll\""},
    {"no byte", "gpt2: DIR/encoder.json: no token for byte 88; get it again", false, "\"X\"",
     "\"XX\""},
    {"not in the alphabet", "gpt2: DIR/encoder.json: \"h e\" stands for no bytes; get it again",
     false, "\"he\"", "\"h e\""},
    {"empty token", "gpt2: DIR/encoder.json: \"\" stands for no bytes; get it again", false,
     "\"he\"", "\"\""},
    {"no version", "gpt2: DIR/vocab.bpe: does not begin with #version; get it again", true,
     "#version: 0.2\n", ""},
    {"empty merges", "gpt2: DIR/vocab.bpe: does not begin with #version; get it again", true, NULL,
     ""},
    {"one part", "gpt2: DIR/vocab.bpe: line 2 is not two tokens that make a third; get it again",
     true, "h e\n", "he\n"},
    {"nothing before the space",
     "gpt2: DIR/vocab.bpe: line 2 is not two tokens that make a third; get it again", true, "h e\n",
     " e\n"},
    {"nothing behind it",
     "gpt2: DIR/vocab.bpe: line 2 is not two tokens that make a third; get it again", true, "h e\n",
     "h \n"},
    {"three parts", "gpt2: DIR/vocab.bpe: line 2 is not two tokens that make a third; get it again",
     true, "h e\n", "h e l\n"},
    {"unknown result",
     "gpt2: DIR/vocab.bpe: line 3 is not two tokens that make a third; get it again", true, "l l\n",
     "l x\n"},
    {"empty line", "gpt2: DIR/vocab.bpe: line 4 is not two tokens that make a third; get it again",
     true, "he ll\n", "\n"},
    {"repeated", "gpt2: DIR/vocab.bpe: line 3 repeats an earlier one; get it again", true, "l l\n",
     "h e\n"},
    {"cut off", "gpt2: DIR/vocab.bpe: ends within line 23; get it again", true,
     "\xC4\x8A \xC4\x8A\n", "\xC4\x8A"},
};

static void replace(char *text, size_t size, const char *from, const char *to) {
    char *at = strstr(text, from);
    if (!CHECK(at, "there is no %s", from)) return;
    char rest[8192];
    snprintf(rest, sizeof rest, "%s", at + strlen(from));
    snprintf(at, size - (size_t)(at - text), "%s%s", to, rest);
}

static void check_damage(const void *row) {
    const Damage *damage = row;
    char encoder[8192], merges[8192];
    snprintf(encoder, sizeof encoder, "%s", tiny_encoder());
    snprintf(merges, sizeof merges, "%s", tiny_merges());
    char *changed = damage->merges ? merges : encoder;
    if (damage->from)
        replace(changed, sizeof merges, damage->from, damage->to);
    else
        strcpy(changed, damage->to);
    Tokenizer *tokenizer =
        tokenizer_gpt2_parse(encoder, strlen(encoder), merges, strlen(merges), "DIR");
    if (CHECK(!tokenizer, "it passes")) CHECK_ERROR("%s", damage->error);
    tokenizer_free(tokenizer);
}

static void missing_files(void) {
    char directory[600];
    snprintf(directory, sizeof directory, "%s", scratch_text("bpe/encoder.json", tiny_encoder()));
    *strrchr(directory, '/') = 0;
    CHECK(!tokenizer_gpt2(directory, 0), "opened");
    CHECK_ERROR("gpt2: %s/vocab.bpe: No such file or directory; " FETCH_HINT, directory);
    scratch_text("bpe/vocab.bpe", tiny_merges());
    Tokenizer *tokenizer = tokenizer_gpt2(directory, 0);
    CHECK(tokenizer, "%s", error_message());
    tokenizer_free(tokenizer);
    *strrchr(directory, '/') = 0;
    CHECK(!tokenizer_gpt2(directory, 0), "opened");
    CHECK_ERROR("gpt2: %s/encoder.json: No such file or directory; " FETCH_HINT, directory);
}

void test_data_vocabulary(void) {
    RUN(every_byte_has_its_character);
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++)
        RUN_ROW(damages[i].what, check_damage, &damages[i]);
    RUN(missing_files);
}
