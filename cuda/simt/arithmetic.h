/* CUDA's functions of numbers that the C library lacks.  The fast ones (__expf ...) are exact here.
 */
#ifndef SIMT_ARITHMETIC_H
#define SIMT_ARITHMETIC_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "bfloat16.h"

/* ---- min, max: all pairs of one type, and what CUDA converts ---- */

#define SIMT_MIN_MAX(type, a_type, b_type)                                                       \
    static inline type min(a_type a, b_type b) { return (type)a < (type)b ? (type)a : (type)b; } \
    static inline type max(a_type a, b_type b) { return (type)a > (type)b ? (type)a : (type)b; }
SIMT_MIN_MAX(int, int, int)
SIMT_MIN_MAX(unsigned, unsigned, unsigned)
SIMT_MIN_MAX(unsigned, int, unsigned)
SIMT_MIN_MAX(unsigned, unsigned, int)
SIMT_MIN_MAX(long, long, long)
SIMT_MIN_MAX(unsigned long, unsigned long, unsigned long)
SIMT_MIN_MAX(unsigned long, long, unsigned long)
SIMT_MIN_MAX(unsigned long, unsigned long, long)
SIMT_MIN_MAX(long long, long long, long long)
SIMT_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
SIMT_MIN_MAX(unsigned long long, long long, unsigned long long)
SIMT_MIN_MAX(unsigned long long, unsigned long long, long long)
#undef SIMT_MIN_MAX
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }
static inline double min(float a, double b) { return fmin((double)a, b); }
static inline double max(float a, double b) { return fmax((double)a, b); }
static inline double min(double a, float b) { return fmin(a, (double)b); }
static inline double max(double a, float b) { return fmax(a, (double)b); }

/* ---- operations that no compiler may fuse ---- */

static inline float simt_rounded(float x) {
    __asm__("" : "+m"(x));
    return x;
}
static inline double simt_rounded(double x) {
    __asm__("" : "+m"(x));
    return x;
}
static inline float __fadd_rn(float a, float b) { return simt_rounded(a + b); }
static inline float __fsub_rn(float a, float b) { return simt_rounded(a - b); }
static inline float __fmul_rn(float a, float b) { return simt_rounded(a * b); }
static inline float __fdiv_rn(float a, float b) { return simt_rounded(a / b); }
static inline float __frcp_rn(float x) { return simt_rounded(1.0f / x); }
static inline float __fsqrt_rn(float x) { return simt_rounded(sqrtf(x)); }
static inline float __frsqrt_rn(float x) { return (float)(1.0 / sqrt((double)x)); }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline double __dadd_rn(double a, double b) { return simt_rounded(a + b); }
static inline double __dsub_rn(double a, double b) { return simt_rounded(a - b); }
static inline double __dmul_rn(double a, double b) { return simt_rounded(a * b); }
static inline double __ddiv_rn(double a, double b) { return simt_rounded(a / b); }
static inline double __dsqrt_rn(double x) { return simt_rounded(sqrt(x)); }
static inline double __drcp_rn(double x) { return simt_rounded(1.0 / x); }
static inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }

/* ---- approximations of the device ---- */

static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
/* Macros: the C library has these names for itself. */
#define __expf(x) expf(x)
#define __exp10f(x) powf(10.0f, x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __log10f(x) log10f(x)
#define __powf(x, y) powf(x, y)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __tanf(x) tanf(x)
#define __sincosf(x, s, c) ((void)(*(s) = sinf(x), *(c) = cosf(x)))
static inline float exp2_fast(float x) {
    float y = exp2f(x);
    return y < 0x1p-126f ? 0.0f : y;
}
static inline float __fdividef(float a, float b) { return a / b; }
static inline float __saturatef(float x) { return x > 0 ? fminf(x, 1.0f) : 0.0f; }

/* ---- bits ---- */

static inline int __float_as_int(float x) { return (int)simt_float_bits(x); }
static inline unsigned __float_as_uint(float x) { return simt_float_bits(x); }
static inline float __int_as_float(int x) { return simt_bits_float((unsigned)x); }
static inline float __uint_as_float(unsigned x) { return simt_bits_float(x); }
static inline long long __double_as_longlong(double x) {
    long long bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline double __longlong_as_double(long long bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned __brev(unsigned x) {
    unsigned r = 0;
    for (int i = 0; i < 32; i++) r |= (x >> i & 1u) << (31 - i);
    return r;
}
static inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
static inline unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned)((unsigned long long)a * b >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((__extension__(unsigned __int128) a * b) >> 64);
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)((((unsigned long long)high << 32 | low) << (shift & 31)) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((unsigned long long)high << 32 | low) >> (shift & 31));
}
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    unsigned long long bytes = (unsigned long long)y << 32 | x;
    unsigned r = 0;
    for (int i = 0; i < 4; i++)
        r |= (unsigned)(bytes >> 8 * (selector >> 4 * i & 7u) & 0xffu) << 8 * i;
    return r;
}

/* ---- conversions: NaN gives 0 and what is out of range the nearest end, as on the device ---- */

static inline int simt_to_int(float x) {
    if (isnan(x)) return 0;
    return x >= 2147483648.0f ? INT32_MAX : x <= -2147483648.0f ? INT32_MIN : (int)x;
}
static inline unsigned simt_to_unsigned(float x) {
    if (!(x > 0)) return 0;
    return x >= 4294967296.0f ? UINT32_MAX : (unsigned)x;
}
static inline int __float2int_rn(float x) { return simt_to_int(rintf(x)); }
static inline int __float2int_rz(float x) { return simt_to_int(truncf(x)); }
static inline int __float2int_rd(float x) { return simt_to_int(floorf(x)); }
static inline int __float2int_ru(float x) { return simt_to_int(ceilf(x)); }
static inline unsigned __float2uint_rn(float x) { return simt_to_unsigned(rintf(x)); }
static inline unsigned __float2uint_rz(float x) { return simt_to_unsigned(truncf(x)); }
static inline float __int2float_rn(int x) { return (float)x; }
static inline float __uint2float_rn(unsigned x) { return (float)x; }
static inline float __ll2float_rn(long long x) { return (float)x; }
static inline float __double2float_rn(double x) { return (float)x; }

#endif
