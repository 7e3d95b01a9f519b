/* __nv_bfloat16 and __nv_bfloat162: storage and conversions, rounded to nearest even as on the
 * device.  Kernels do their arithmetic in float. */
#ifndef SIMT_BFLOAT16_H
#define SIMT_BFLOAT16_H

#include <string.h>

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

struct alignas(2) __nv_bfloat16 {
   protected:
    unsigned short bits;

   public:
    __nv_bfloat16() = default;
    __nv_bfloat16(float x) : bits(simt_round_bfloat16(x)) {}
    operator float() const { return simt_bits_float((unsigned)bits << 16); }
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

#endif
