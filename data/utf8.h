/* UTF-8 (RFC 3629): no longer forms than needed, no halves of surrogate pairs, nothing above
 * U+10FFFF. */
#pragma once

#include <stddef.h>

/* Returns how many bytes, from the first on, are whole characters; `bytes` if all of them are. */
size_t utf8_valid(const char *text, size_t bytes);
