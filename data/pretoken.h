/* GPT-2's first step: text is cut into words, and each word is then encoded by itself.  The pattern
 * is the one published with the model (Radford et al. 2019):
 *
 *   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 * White space is Unicode's White_Space, spelled out because PCRE2's \s also has U+180E.  Letters
 * and numbers are those of the Unicode version PCRE2 was built with.
 *
 * The published encoder accepts only text.  Here a byte that is not part of valid UTF-8 counts as a
 * character that is neither letter, number nor space, and keeps its value, so that encoding and
 * decoding any bytes gives the same bytes. */
#pragma once

#include <stddef.h>

typedef struct Pretokenizer Pretokenizer;

/* Compiles the pattern.  NULL and an error if memory runs out. */
Pretokenizer *pretokenizer_create(void);
void pretokenizer_free(Pretokenizer *pretokenizer);

/* Calls word() with each word in turn.  -1 and an error if memory runs out. */
int pretokenize(const Pretokenizer *pretokenizer, const char *text, size_t bytes,
                void (*word)(void *context, const char *word, size_t bytes), void *context);
