/* Rotary positions (RoFormer, Su et al. 2021, eq. 34), and how later models scale them.  The paper
 * pairs elements 2i and 2i + 1, and so do Meta's own files of LLaMA; here i and i + d/2 are a pair,
 * as in the files that Hugging Face converted from them. */
#include <math.h>

#include "plain.h"

double rope_frequency(const Rope *rope, int pair, int d) {
    const double frequency = pow(rope->base, -2.0 * pair / d);
    if (!(rope->factor > 1)) return frequency;
    if (!(rope->original > 0)) return frequency / rope->factor;
    const double turns = rope->original * frequency / (2 * acos(-1));
    const double kept = fmin(fmax((turns - rope->low) / (rope->high - rope->low), 0), 1);
    return kept * frequency + (1 - kept) * frequency / rope->factor;
}

void rope_rotate(double *x, const Rope *rope, int position, int d) {
    for (int i = 0; i < d / 2; i++) {
        const double angle = position * rope_frequency(rope, i, d);
        const double first = x[i], second = x[i + d / 2];
        x[i] = first * cos(angle) - second * sin(angle);
        x[i + d / 2] = first * sin(angle) + second * cos(angle);
    }
}
