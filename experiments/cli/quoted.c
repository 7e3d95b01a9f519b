#include "quoted.h"

#include <ctype.h>
#include <string.h>

static bool is_plain(const char *name) {
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && !strchr("_./:=,+@%-", *name)) return false;
    return true;
}

const char *quoted(char text[QUOTED], const char *name) {
    const bool plain = *name && is_plain(name);
    char *to = text;
    if (!plain) *to++ = '\'';
    for (; *name && to < text + QUOTED - 6; name++) {
        *to++ = *name;
        if (*name != '\'') continue;
        memcpy(to, "\\''", 3); /* '\'' ends the quotes, adds one, and begins them again */
        to += 3;
    }
    if (!plain) *to++ = '\'';
    *to = 0;
    return text;
}
