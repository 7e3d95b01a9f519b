#include "bytemap.h"

#include <stdbool.h>

static bool is_plain(int byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

/* -1 if there is none. */
static int byte_of(int character) {
    if (character < 0x100) return is_plain(character) ? character : -1;
    int next = 0x100;
    for (int byte = 0; byte < 0x100; byte++)
        if (!is_plain(byte) && next++ == character) return byte;
    return -1;
}

int bytemap_decode(char *bytes, const char *text, size_t length) {
    int count = 0;
    for (size_t i = 0; i < length; i++) {
        int character = (unsigned char)text[i];
        if (character >= 0x80) {
            const int next = i + 1 < length ? (unsigned char)text[i + 1] : 0;
            if (character < 0xC2 || character > 0xDF || (next & 0xC0) != 0x80) return -1;
            character = (character & 0x1F) << 6 | (next & 0x3F);
            i++;
        }
        const int byte = byte_of(character);
        if (byte < 0) return -1;
        bytes[count++] = (char)byte;
    }
    return count;
}
