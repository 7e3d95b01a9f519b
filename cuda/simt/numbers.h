/* CUDA's types and functions of numbers that kernels use and C++ lacks. */
#pragma once

#include <math.h>
#include <stdint.h>

#include "../../ref/base/bf16.h"

/* ---- vectors, with CUDA's alignments, and dim3 ---- */

struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct uint3 {
    unsigned x, y, z;
};
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz) {}
};

/* ---- bfloat16: storage and conversions, rounded to nearest even as on the device ----
 * Kernels do their arithmetic in float. */

struct alignas(2) __nv_bfloat16 {
   protected:
    unsigned short bits;

   public:
    __nv_bfloat16() = default;
    __nv_bfloat16(float x) : bits(bf16_of(x)) {}
    operator float() const { return float_of_bf16(bits); }
    friend inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
};

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};

static inline __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
static inline float __bfloat162float(__nv_bfloat16 x) { return x; }
static inline __nv_bfloat162 __floats2bfloat162_rn(float low, float high) {
    return {__nv_bfloat16(low), __nv_bfloat16(high)};
}
static inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
static inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }

/* ---- arithmetic ---- */

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
