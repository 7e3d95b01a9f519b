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

static void rotate(real *restrict to, const real *restrict x, const real *restrict cosine,
                   const real *restrict sine, int half) {
    for (int i = 0; i < half; i++) {
        to[i] = x[i] * cosine[i] - x[half + i] * sine[i];
        to[half + i] = x[i] * sine[i] + x[half + i] * cosine[i];
    }
}

static void unrotate(real *restrict dx, const real *restrict from, const real *restrict cosine,
                     const real *restrict sine, int half) {
    for (int i = 0; i < half; i++) {
        dx[i] += from[i] * cosine[i] + from[half + i] * sine[i];
        dx[half + i] += from[half + i] * cosine[i] - from[i] * sine[i];
    }
}

void rope_rotate_rows(real *to, const real *x, int ldx, const Angles *angles, int t) {
    const int half = angles->d / 2;
    for (int i = 0; i < t; i++) {
        const size_t at = (size_t)i * (size_t)half;
        rotate(to + 2 * at, x + (size_t)i * (size_t)ldx, angles->cosine + at, angles->sine + at,
               half);
    }
}

void rope_unrotate_rows(real *dx, int ldx, const real *from, const Angles *angles, int t) {
    const int half = angles->d / 2;
    for (int i = 0; i < t; i++) {
        const size_t at = (size_t)i * (size_t)half;
        unrotate(dx + (size_t)i * (size_t)ldx, from + 2 * at, angles->cosine + at,
                 angles->sine + at, half);
    }
}
