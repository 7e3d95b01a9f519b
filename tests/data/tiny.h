/* A vocabulary small enough to work out by hand, in the format of GPT-2's file. It is in a header
 * because the fuzz programs use it too. */
#pragma once

#include <string.h>

enum { TINY_MERGES = 22, TINY_END = 256 + TINY_MERGES };

/* The token of a printable ASCII character, and of a space. */
#define TINY_BYTE(character) ((character) - '!')
enum { TINY_BLANK = 220 };

/* The file writes a space as U+0120. */
#define TINY_SPACE "\xC4\xA0"

static const char *const tiny_lines[TINY_MERGES] = {
    "h e", "l l", "he ll", "hell o", TINY_SPACE " w", "o r", "or l", "a b", "ab c", "abc ab",
    "\xC3\x83 \xC2\xA9",
    /* The merges join spaces and newlines, and the last byte of other white space with a space, so
     * it matters where white space is cut. */
    TINY_SPACE " " TINY_SPACE, "\xC4\xA2 " TINY_SPACE, "\xC4\xA5 " TINY_SPACE,
    "\xC4\xA7 " TINY_SPACE, "\xC4\xAC " TINY_SPACE, "\xC5\x81 " TINY_SPACE, "\xC5\x82 " TINY_SPACE,
    "\xC2\xA8 " TINY_SPACE, "\xC2\xA9 " TINY_SPACE, "\xC2\xAF " TINY_SPACE, "\xC4\x8A \xC4\x8A"};

/* Returns the text of vocab.bpe, which is static. */
static inline const char *tiny_merges(void) {
    static char text[512];
    strcpy(text, "#version: 0.2\n");
    for (int i = 0; i < TINY_MERGES; i++) {
        strcat(text, tiny_lines[i]);
        strcat(text, "\n");
    }
    return text;
}
