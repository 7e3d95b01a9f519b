/* Whole numbers as bytes in a file, the lowest byte first. */
#ifndef DATA_LITTLE_ENDIAN_H
#define DATA_LITTLE_ENDIAN_H

#include <stdint.h>

static inline uint64_t little_endian_get(const unsigned char *from, int bytes) {
    uint64_t number = 0;
    for (int b = bytes - 1; b >= 0; b--) number = number << 8 | from[b];
    return number;
}

static inline void little_endian_put(unsigned char *to, int bytes, uint64_t number) {
    for (int b = 0; b < bytes; b++) to[b] = (unsigned char)(number >> 8 * b);
}

#endif
