/* bf16, the upper half of a float, and tf32, on the processor. */
#pragma once

#include <stdint.h>
#include <string.h>

static inline uint32_t float_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline float bits_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Rounds to nearest, ties to even, as the device does; every NaN becomes the device's one. */
static inline uint16_t bf16_of(float x) {
    uint32_t bits = float_bits(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
static inline float float_of_bf16(uint16_t half) { return bits_float((uint32_t)half << 16); }

/* Returns the bits of x rounded to tf32, 10 bits of mantissa: to nearest, ties away from zero, as
 * cvt.rna does. */
static inline uint32_t tf32_of(float x) {
    uint32_t bits = float_bits(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffffffu;
    if ((bits & 0x7fffffffu) == 0x7f800000u) return bits;
    return (bits + 0x1000u) & ~0x1fffu;
}
