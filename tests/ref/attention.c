#include "attention.h"

#include <math.h>

#include "../../ref/fast/rope.h"
#include "../test.h"
#include "tolerance.h"

bool has_a_single_key(const Case *row) {
    return row->node.kind == OP_ATTENTION &&
           (row->node.in_shape.w == 1 || row->node.attention.causal);
}

static void check_zeros(const real *dx, size_t count, int sample, int position) {
    for (size_t i = 0; i < count; i++)
        CHECK(dx[i] == 0, "sample %d, position %d: dqkv[%zu] is %g", sample, position, i,
              (double)dx[i]);
}

/* A query that attends to a single key gives it probability 1 whatever the score, so neither has a
 * gradient.  Rounding must not make one, since Adam would turn it into full steps.  The first query
 * is such a one, and with a window of 1 all are, so that no key has a gradient either. */
void one_key_has_no_gradient(const Case *row, bool plain) {
    const Attention *a = &row->node.attention;
    const int t = row->node.in_shape.w;
    const size_t width = (size_t)row->node.in_shape.c;
    CaseData data;
    case_create(&data, row, false);
    NodeIO io = case_io(&data);
    io.plain = plain;
    case_run(&data, &io);
    const bool all = t == 1 || a->window == 1;
    const size_t zeros = (size_t)((a->heads + (all ? a->groups : 0)) * a->d);
    for (int s = 0; s < row->n; s++)
        for (int i = 0; i < (all ? t : 1); i++)
            check_zeros(io.dx + (size_t)(s * t + i) * width, zeros, s, i);
    case_free(&data);
}

/* The frequency computed from wavelengths, as in the code published with Llama 3.1. */
static double frequency_of(const Rope *rope, int pair, int d) {
    const double frequency = pow(rope->base, -2.0 * pair / d);
    if (rope->original <= 0) return rope->factor > 0 ? frequency / rope->factor : frequency;
    const double wavelength = 2 * acos(-1) / frequency;
    if (wavelength < rope->original / rope->high) return frequency;
    if (wavelength > rope->original / rope->low) return frequency / rope->factor;
    const double smooth = (rope->original / wavelength - rope->low) / (rope->high - rope->low);
    return (1 - smooth) * frequency / rope->factor + smooth * frequency;
}

void rope_frequencies_are_as_published(void) {
    for (int i = 0; i < case_count; i++) {
        const Attention *a = &cases[i].node.attention;
        for (int pair = 0; a->rope.base > 0 && pair < a->d / 2; pair++) {
            const double got = rope_frequency(&a->rope, pair, a->d);
            const double expected = frequency_of(&a->rope, pair, a->d);
            CHECK(fabs(got - expected) <= 1e-14 * expected, "%s: pair %d turns by %.17g, not %.17g",
                  cases[i].name, pair, got, expected);
        }
    }
}

static void check_angles(const Rope *rope, int t, int d) {
    const Angles angles = rope_angles(rope, t, d);
    for (int position = 0; position < t; position++)
        for (int pair = 0; pair < d / 2; pair++) {
            const double angle = position * rope_frequency(rope, pair, d);
            const int i = position * (d / 2) + pair;
            CHECK(fabs((double)angles.cosine[i] - cos(angle)) <= REAL_EPS &&
                      fabs((double)angles.sine[i] - sin(angle)) <= REAL_EPS,
                  "base %g, factor %g, low %g, high %g, original %g, heads of %d: position %d, "
                  "pair %d",
                  rope->base, rope->factor, rope->low, rope->high, rope->original, d, position,
                  pair);
        }
}

/* Each of these turns another pair by another angle than the first. */
void angles_follow_every_setting(void) {
    static const Rope first = {10000, 8, 1, 4, 64};
    static const Rope others[] = {{500, 8, 1, 4, 64},     {10000, 2, 1, 4, 64},
                                  {10000, 8, 0.5, 4, 64}, {10000, 8, 1, 6, 64},
                                  {10000, 8, 1, 4, 32},   {10000, 8, 1, 4, 0}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        check_angles(&first, 40, 16);
        check_angles(&others[i], 40, 16);
    }
    check_angles(&first, 40, 16);
    check_angles(&first, 40, 8);
    check_angles(&first, 200, 8);
    check_angles(&first, 40, 16);
}
