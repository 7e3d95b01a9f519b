/* __nv_bfloat16 and __nv_bfloat162: storage, conversions and the four operations, each rounded to
 * nearest even as on the device.  (float has more than twice the bits and two, so that rounding a
 * float result of + - * / again gives what rounding once would.) */
#ifndef SIMT_BFLOAT16_H
#define SIMT_BFLOAT16_H

#include <string.h>

#include "vectors.h"

static inline unsigned simt_float_bits(float x) {
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline float simt_bits_float(unsigned bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline unsigned short simt_round_bfloat16(float x) {
    unsigned bits = simt_float_bits(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff; /* the device's one NaN */
    return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

struct alignas(2) __nv_bfloat16_raw {
    unsigned short x;
};

struct alignas(2) __nv_bfloat16 {
   protected:
    unsigned short bits;

   public:
    __nv_bfloat16() = default;
    constexpr __nv_bfloat16(__nv_bfloat16_raw raw) : bits(raw.x) {}
    __nv_bfloat16(float x) : bits(simt_round_bfloat16(x)) {}
    operator float() const { return simt_bits_float((unsigned)bits << 16); }
    operator __nv_bfloat16_raw() const { return {bits}; }
};
typedef __nv_bfloat16 nv_bfloat16;

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
    __nv_bfloat162() = default;
    __nv_bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) : x(low), y(high) {}
};
typedef __nv_bfloat162 nv_bfloat162;

static inline __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
static inline __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
static inline float __bfloat162float(__nv_bfloat16 x) { return x; }
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) {
    return static_cast<__nv_bfloat16_raw>(x).x;
}
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
    return __nv_bfloat16_raw{bits};
}

static inline __nv_bfloat162 __floats2bfloat162_rn(float low, float high) {
    return {__nv_bfloat16(low), __nv_bfloat16(high)};
}
static inline __nv_bfloat162 __float22bfloat162_rn(float2 v) {
    return __floats2bfloat162_rn(v.x, v.y);
}
static inline __nv_bfloat162 __float2bfloat162_rn(float x) { return __floats2bfloat162_rn(x, x); }
static inline float2 __bfloat1622float2(__nv_bfloat162 v) { return {v.x, v.y}; }
static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) {
    return {low, high};
}
static inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return {x, x}; }
static inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
static inline float __low2float(__nv_bfloat162 v) { return v.x; }
static inline float __high2float(__nv_bfloat162 v) { return v.y; }
static inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
static inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }

#define SIMT_BFLOAT16_OPERATION(op)                                                           \
    static inline __nv_bfloat16 operator op(const __nv_bfloat16 &a, const __nv_bfloat16 &b) { \
        return __nv_bfloat16(static_cast<float>(a) op static_cast<float>(b));                 \
    }                                                                                         \
    static inline __nv_bfloat16 &operator op##=(__nv_bfloat16 &a, const __nv_bfloat16 &b) {   \
        return a = a op b;                                                                    \
    }
SIMT_BFLOAT16_OPERATION(+)
SIMT_BFLOAT16_OPERATION(-)
SIMT_BFLOAT16_OPERATION(*)
SIMT_BFLOAT16_OPERATION(/)
#undef SIMT_BFLOAT16_OPERATION
static inline __nv_bfloat16 operator-(const __nv_bfloat16 &a) {
    return __ushort_as_bfloat16((unsigned short)(__bfloat16_as_ushort(a) ^ 0x8000u));
}
#define SIMT_BFLOAT16_COMPARISON(op)                                                 \
    static inline bool operator op(const __nv_bfloat16 &a, const __nv_bfloat16 &b) { \
        return static_cast<float>(a) op static_cast<float>(b);                       \
    }
SIMT_BFLOAT16_COMPARISON(==)
SIMT_BFLOAT16_COMPARISON(!=)
SIMT_BFLOAT16_COMPARISON(<)
SIMT_BFLOAT16_COMPARISON(<=)
SIMT_BFLOAT16_COMPARISON(>)
SIMT_BFLOAT16_COMPARISON(>=)
#undef SIMT_BFLOAT16_COMPARISON
static inline __nv_bfloat16 __hadd(__nv_bfloat16 a, __nv_bfloat16 b) { return a + b; }
static inline __nv_bfloat16 __hsub(__nv_bfloat16 a, __nv_bfloat16 b) { return a - b; }
static inline __nv_bfloat16 __hmul(__nv_bfloat16 a, __nv_bfloat16 b) { return a * b; }
static inline bool __hisnan(__nv_bfloat16 a) { return (__bfloat16_as_ushort(a) & 0x7fff) > 0x7f80; }

#endif
