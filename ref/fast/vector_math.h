/* Vector arithmetic that the elementwise ops share: loads of part of a vector, maximum, sum,
 * exponential, sigmoid.
 *
 * Compilers do not vectorise loops over libm's expf, nor sums and maxima that they may not reorder,
 * so these are written with vectors.  A last piece that is shorter than a vector goes through the
 * same code, so that an element's bits do not depend on its position. */
#pragma once

#include <math.h>
#include <string.h>

#include "simd.h"

INLINE vec vec_all(real x) { return x - (vec){0}; }

/* Returns the first `count` elements, at most LANES of them; the other lanes are `rest`. */
INLINE vec vec_load_part(const real *from, ptrdiff_t count, real rest) {
    if ((size_t)count >= LANES) return vec_load(from);
    real part[LANES];
    for (int i = 0; i < LANES; i++) part[i] = rest;
    memcpy(part, from, (size_t)count * sizeof *part);
    return vec_load(part);
}

INLINE void vec_store_part(real *to, vec x, ptrdiff_t count) {
    if ((size_t)count >= LANES) {
        vec_store(to, x);
    } else {
        real part[LANES];
        vec_store(part, x);
        memcpy(to, part, (size_t)count * sizeof *part);
    }
}

/* Returns mask ? a : b, lane by lane; a mask is the result of a comparison. */
INLINE vec vec_select(vec_bits mask, vec a, vec b) {
    return (vec)((mask & (vec_bits)a) | (~mask & (vec_bits)b));
}

/* Returns the larger of two numbers, lane by lane; b where either is NaN. */
INLINE vec vec_max(vec a, vec b) { return vec_select(a > b, a, b); }

/* Returns the sum of all lanes, added in pairs. */
INLINE real vec_sum(vec x) {
    real lane[LANES];
    vec_store(lane, x);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
}

INLINE real vec_largest(vec x) {
    real lane[LANES];
    vec_store(lane, x);
    for (int i = 1; i < LANES; i++) lane[0] = lane[i] > lane[0] ? lane[i] : lane[0];
    return lane[0];
}

#ifdef BCD_DOUBLE

/* The double build serves finite differences, where libm's accuracy counts and speed does not. */
INLINE vec vec_exp(vec x) {
    for (int i = 0; i < LANES; i++) x[i] = exp(x[i]);
    return x;
}

#else

/* e^x = 2^n e^r with n = round(x / ln 2), so |r| <= ln 2 / 2.  e^r is 1 + r + r^2 q(r), q the
 * polynomial of degree 4 with the smallest maximum of its relative error (0.05 of a unit roundoff).
 * Infinity and zero beyond the range, subnormal numbers at its lower end, NaN for NaN. */
INLINE vec vec_exp(vec x) {
    /* Beyond these the result is infinite or zero; n stays in [-150, 128].  Comparisons with NaN
     * are false and leave it. */
    x = vec_select(x > 89.0f, vec_all(89.0f), x);
    x = vec_select(x < -104.0f, vec_all(-104.0f), x);
    /* Adding 1.5 * 2^23 leaves the nearest integer in the low bits of the number. */
    const float shift = 12582912.0f;
    vec shifted = x * 1.44269504f + shift;
    vec n = shifted - shift;
    vec r = x - n * 0.693145752f; /* ln 2 in two parts, the first of 17 bits: n times it is exact */
    r = r - n * 1.42860677e-6f;
    vec q = r * 1.38144545e-3f + 8.36877991e-3f;
    q = q * r + 4.16683927e-2f;
    q = q * r + 1.66665196e-1f;
    q = q * r + 4.99999940e-1f;
    vec p = (r * r) * q + r + 1.0f;
    /* 2^n in two factors: n itself may be outside of the exponents of normal numbers. */
    vec_bits whole = (vec_bits)shifted - (vec_bits)vec_all(shift);
    vec_bits half = whole >> 1;
    vec low = (vec)((half + 127) << 23), high = (vec)((whole - half + 127) << 23);
    return p * low * high;
}

#endif

/* Returns s = 1 / (1 + e^-x) and sets *complement to 1 - s, which a subtraction would round to 0
 * where s is near 1.  Below -80 s is 0: a large x times what is left of it, 1e-35, would be no
 * small number. */
INLINE vec vec_sigmoid(vec x, vec *complement) {
    /* At -80 the reciprocal of s does not overflow yet. */
    vec e = vec_exp(-vec_select(x < -80, vec_all(-80), x));
    vec s = 1 / (1 + e);
    *complement = e * s;
    return vec_select(x < -80, vec_all(0), s);
}
