#include "rope.h"

#include <math.h>

#include "scratch.h"

static bool same_rope(const Rope *a, const Rope *b) {
    return a->base == b->base && a->factor == b->factor && a->low == b->low && a->high == b->high &&
           a->original == b->original;
}

Angles rope_angles(const Rope *rope, int t, int d) {
    static _Thread_local Rope last;
    static _Thread_local int last_t, last_d;
    enum { STEP = 64 }; /* a generation asks for one position more each time */
    const bool enough = t <= last_t && d == last_d && same_rope(rope, &last);
    if (!enough) t = (t + STEP - 1) / STEP * STEP;
    const ptrdiff_t half = d / 2, count = (enough ? last_t : t) * half;
    real *cosine = scratch(SCRATCH_ROPE, 2 * (size_t)count), *sine = cosine + count;
    if (enough) return (Angles){d, cosine, sine};
    enum { COST = 64 }; /* of one angle, in additions */
#pragma omp parallel for if (count > WORTH_THREADS / COST)
    for (int pair = 0; pair < d / 2; pair++) {
        const double frequency = rope_frequency(rope, pair, d);
        for (int position = 0; position < t; position++) {
            cosine[position * half + pair] = (real)cos(position * frequency);
            sine[position * half + pair] = (real)sin(position * frequency);
        }
    }
    last = *rope;
    last_t = t;
    last_d = d;
    return (Angles){d, cosine, sine};
}

void rope_rotate_rows(real *to, const real *x, ptrdiff_t ldx, const Angles *angles, int t) {
    const int half = angles->d / 2;
    const real *cosine = angles->cosine, *sine = angles->sine;
    for (; t > 0; t--, to += 2 * half, x += ldx, cosine += half, sine += half) {
#pragma omp simd
        for (int i = 0; i < half; i++) {
            to[i] = x[i] * cosine[i] - x[half + i] * sine[i];
            to[half + i] = x[i] * sine[i] + x[half + i] * cosine[i];
        }
    }
}

void rope_unrotate_rows(real *dx, ptrdiff_t ldx, const real *from, const Angles *angles, int t) {
    const int half = angles->d / 2;
    const real *cosine = angles->cosine, *sine = angles->sine;
    for (; t > 0; t--, dx += ldx, from += 2 * half, cosine += half, sine += half) {
#pragma omp simd
        for (int i = 0; i < half; i++) {
            dx[i] += from[i] * cosine[i] + from[half + i] * sine[i];
            dx[half + i] += from[half + i] * cosine[i] - from[i] * sine[i];
        }
    }
}
