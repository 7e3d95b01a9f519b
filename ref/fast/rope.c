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

static void rotate(real *restrict to, const real *restrict x, const real *restrict y,
                   const real *restrict cosine, const real *restrict sine, int pairs) {
    for (int i = 0; i < pairs; i++) {
        to[i] = x[i] * cosine[i] - y[i] * sine[i];
        to[pairs + i] = x[i] * sine[i] + y[i] * cosine[i];
    }
}

static void unrotate(real *restrict dx, real *restrict dy, const real *restrict from,
                     const real *restrict cosine, const real *restrict sine, int pairs) {
    for (int i = 0; i < pairs; i++) {
        dx[i] += from[i] * cosine[i] + from[pairs + i] * sine[i];
        dy[i] += from[pairs + i] * cosine[i] - from[i] * sine[i];
    }
}

void rope_rotate_rows(real *to, const real *x, int ldx, const Angles *angles, int position,
                      int rows, int pair, int pairs) {
    const size_t half = (size_t)(angles->d / 2);
    for (int i = 0; i < rows; i++) {
        const real *first = x + (size_t)i * (size_t)ldx + pair;
        const size_t at = (size_t)(position + i) * half + (size_t)pair;
        rotate(to + i * 2 * ROPE_PAIRS, first, first + half, angles->cosine + at, angles->sine + at,
               pairs);
    }
}

void rope_unrotate_rows(real *dx, int ldx, const real *from, const Angles *angles, int position,
                        int rows, int pair, int pairs) {
    const size_t half = (size_t)(angles->d / 2);
    for (int i = 0; i < rows; i++) {
        real *first = dx + (size_t)i * (size_t)ldx + pair;
        const size_t at = (size_t)(position + i) * half + (size_t)pair;
        unrotate(first, first + half, from + i * 2 * ROPE_PAIRS, angles->cosine + at,
                 angles->sine + at, pairs);
    }
}
