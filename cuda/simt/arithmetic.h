/* CUDA's functions of numbers that the C library lacks and a kernel uses. */
#ifndef SIMT_ARITHMETIC_H
#define SIMT_ARITHMETIC_H

#include <math.h>
#include <stdint.h>

#include "bfloat16.h"

#define SIMT_MIN_MAX(type)                                           \
    static inline type min(type a, type b) { return a < b ? a : b; } \
    static inline type max(type a, type b) { return a > b ? a : b; }
SIMT_MIN_MAX(int)
SIMT_MIN_MAX(unsigned)
SIMT_MIN_MAX(unsigned long long)
#undef SIMT_MIN_MAX

/* Operations that no compiler may fuse with another. */
static inline float simt_rounded(float x) {
    __asm__("" : "+m"(x));
    return x;
}
static inline float __fadd_rn(float a, float b) { return simt_rounded(a + b); }
static inline float __fmul_rn(float a, float b) { return simt_rounded(a * b); }
static inline float __frcp_rn(float x) { return simt_rounded(1.0f / x); }

/* Exact here, an approximation on the device. */
static inline float exp2_fast(float x) {
    float y = exp2f(x);
    return y < 0x1p-126f ? 0.0f : y;
}

static inline unsigned __float_as_uint(float x) { return float_bits(x); }
static inline float __uint_as_float(unsigned x) { return bits_float(x); }
static inline unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned)((unsigned long long)a * b >> 32);
}

#endif
