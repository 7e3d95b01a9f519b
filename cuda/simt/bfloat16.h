/* __nv_bfloat16 and __nv_bfloat162: storage and conversions, rounded to nearest even as on the
 * device.  Kernels do their arithmetic in float. */
#ifndef SIMT_BFLOAT16_H
#define SIMT_BFLOAT16_H

#include "../bf16.h"

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

#endif
