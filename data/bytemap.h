/* GPT-2's files write every byte as one printable character: itself if it is printable in
 * Latin-1, else U+0100 and up, in order. */
#ifndef DATA_BYTEMAP_H
#define DATA_BYTEMAP_H

#include <stddef.h>

/* Overwrites bytes with what text[length] stands for, at most `length` of them, and returns their
 * number; -1 if a character stands for no byte. */
int bytemap_decode(char *bytes, const char *text, size_t length);

#endif
