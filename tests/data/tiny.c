#include "tiny.h"

#include <stdio.h>
#include <string.h>

#include "../../data/bytemap.h"

/* In the files a space is written as U+0120. */
#define SPACE "\xC4\xA0"

static const char *const lines[TINY_MERGES] = {
    "h e",  "l l", "he ll",  "hell o", SPACE " w",         "o r",
    "or l", "a b", "abc ab", "ab c",   "\xC3\x83 \xC2\xA9"};
const char *const tiny_merged[TINY_MERGES] = {"he",  "ll", "hell",  "hello", " w",      "or",
                                              "orl", "ab", "abcab", "abc",   "\xC3\xA9"};

static void append_token(char *text, size_t size, const char *bytes, int number) {
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

const char *tiny_encoder(void) {
    static char text[8192];
    strcpy(text, "{");
    for (int byte = 0; byte < 256; byte++)
        append_token(text, sizeof text, (char[]){(char)byte, 0}, byte);
    for (int i = 0; i < TINY_MERGES; i++) append_token(text, sizeof text, tiny_merged[i], 256 + i);
    append_token(text, sizeof text, "<|endoftext|>", TINY_END);
    return strcat(text, "}\n");
}

const char *tiny_merges(void) {
    static char text[512];
    strcpy(text, "#version: 0.2\n");
    for (int i = 0; i < TINY_MERGES; i++) {
        strcat(text, lines[i]);
        strcat(text, "\n");
    }
    return text;
}
