/* A vocabulary small enough to work out by hand, in the format of GPT-2's files: token b is the
 * byte b, then come the merges in order, last the end of text.  In a header, for the fuzz programs
 * too. */
#ifndef TESTS_DATA_TINY_H
#define TESTS_DATA_TINY_H

#include <stdio.h>
#include <string.h>

#include "../../data/vocabulary.h"

enum { TINY_MERGES = 22, TINY_END = 256 + TINY_MERGES };

/* In the files a space is written as U+0120. */
#define TINY_SPACE "\xC4\xA0"

static const char *const tiny_lines[TINY_MERGES] = {
    "h e", "l l", "he ll", "hell o", TINY_SPACE " w", "o r", "or l", "a b", "abc ab", "ab c",
    "\xC3\x83 \xC2\xA9",
    /* Spaces and newlines, and the last bytes of other white space before a space: so it matters
     * where white space is cut. */
    TINY_SPACE " " TINY_SPACE, "\xC4\xA2 " TINY_SPACE, "\xC4\xA5 " TINY_SPACE,
    "\xC4\xA7 " TINY_SPACE, "\xC4\xAC " TINY_SPACE, "\xC5\x81 " TINY_SPACE, "\xC5\x82 " TINY_SPACE,
    "\xC2\xA8 " TINY_SPACE, "\xC2\xA9 " TINY_SPACE, "\xC2\xAF " TINY_SPACE, "\xC4\x8A \xC4\x8A"};
static const char *const tiny_merged[TINY_MERGES] = {
    "he",    "ll",    "hell",     "hello", " w",    "or",    "orl",   "ab",
    "abcab", "abc",   "\xC3\xA9", "  ",    "\x80 ", "\x83 ", "\x85 ", "\x8A ",
    "\x9F ", "\xA0 ", "\xA8 ",    "\xA9 ", "\xAF ", "\n\n"};

/* Overwrites text[3] with the character that bytemap_decode reads as this byte, terminated. */
static inline void bytemap_encode(char text[3], unsigned char byte) {
    char back[3];
    for (unsigned code = 1; code < 0x200; code++) {
        size_t length = 0;
        if (code >= 0x80) text[length++] = (char)(0xC0 | code >> 6);
        text[length++] = (char)(code < 0x80 ? code : 0x80 | (code & 0x3F));
        text[length] = 0;
        if (bytemap_decode(back, text, strlen(text)) == 1 && (unsigned char)back[0] == byte) return;
    }
    *text = 0;
}

static inline void tiny_append(char *text, size_t size, const char *bytes, int number) {
    size_t length = strlen(text);
    length += (size_t)snprintf(text + length, size - length, number ? ", \"" : "\"");
    for (size_t i = 0; i == 0 || bytes[i]; i++) { /* also for the token of byte 0 */
        char character[3];
        bytemap_encode(character, (unsigned char)bytes[i]);
        const char *escape = bytes[i] == '"' || bytes[i] == '\\' ? "\\" : "";
        length += (size_t)snprintf(text + length, size - length, "%s%s", escape, character);
    }
    snprintf(text + length, size - length, "\": %d", number);
}

/* The text of encoder.json; static. */
static inline const char *tiny_encoder(void) {
    static char text[8192];
    strcpy(text, "{");
    for (int byte = 0; byte < 256; byte++)
        tiny_append(text, sizeof text, (char[]){(char)byte, 0}, byte);
    for (int i = 0; i < TINY_MERGES; i++) tiny_append(text, sizeof text, tiny_merged[i], 256 + i);
    tiny_append(text, sizeof text, "<|endoftext|>", TINY_END);
    return strcat(text, "}\n");
}

/* The text of vocab.bpe; static. */
static inline const char *tiny_merges(void) {
    static char text[512];
    strcpy(text, "#version: 0.2\n");
    for (int i = 0; i < TINY_MERGES; i++) {
        strcat(text, tiny_lines[i]);
        strcat(text, "\n");
    }
    return text;
}

#endif
