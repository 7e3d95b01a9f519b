/* A 64-bit checksum for provenance and for finding damage: FNV-1a (Fowler, Noll, Vo), with one step
 * per number (pixel or token) instead of one per byte.  Each step is a bijection of the sum, so a
 * single changed number always changes the result. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CHECKSUM_START 0xCBF29CE484222325u

static inline uint64_t checksum_add(uint64_t sum, uint64_t number) {
    return (sum ^ number) * 0x100000001B3u;
}

static inline uint64_t checksum_bytes(uint64_t sum, const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) sum = checksum_add(sum, bytes[i]);
    return sum;
}
