#include "rope.h"

#include <math.h>

#include "rows.h"
#include "scratch.h"

Angles rope_angles(const Rope *rope, int t, int d) {
    const size_t half = (size_t)(d / 2), count = (size_t)t * half;
    real *cosine = scratch(SCRATCH_ROPE, 2 * count), *sine = cosine + count;
    enum { COST = 64 }; /* of one angle, in additions */
#pragma omp parallel for if (count > WORTH_THREADS / COST)
    for (int pair = 0; pair < d / 2; pair++) {
        const double frequency = rope_frequency(rope, pair, d);
        for (int position = 0; position < t; position++) {
            const size_t at = (size_t)position * half + (size_t)pair;
            cosine[at] = (real)cos(position * frequency);
            sine[at] = (real)sin(position * frequency);
        }
    }
    return (Angles){d, cosine, sine};
}

void rope_rotate_rows(real *to, const real *x, int ldx, const Angles *angles, int t) {
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

void rope_unrotate_rows(real *dx, int ldx, const real *from, const Angles *angles, int t) {
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
