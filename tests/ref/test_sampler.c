/* The order in which samples are taken. */
#include <math.h>
#include <string.h>

#include "../../ref/dataset.h"
#include "../test.h"

static void each_epoch_is_a_permutation(void) {
    enum { N = 37, BATCH = 5, EPOCHS = 5 };
    Sampler s;
    int stream[N * EPOCHS];
    if (!CHECK(sampler_init(&s, 3, N, 1) == 0, "%s", error_message())) return;
    sampler_draw(&s, 0);
    CHECK(s.used == N, "%d used", s.used);
    for (uint64_t at = 0; at < N * EPOCHS; at += BATCH) sampler_ids(&s, stream + at, at, BATCH);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        int drawn[N] = {0};
        for (int i = 0; i < N; i++) drawn[stream[epoch * N + i]]++;
        for (int i = 0; i < N; i++)
            CHECK(drawn[i] == 1, "epoch %d: %d drawn %d times", epoch, i, drawn[i]);
        CHECK(epoch == 0 ||
                  memcmp(stream + epoch * N, stream + (epoch - 1) * N, N * sizeof(int)) != 0,
              "epochs %d and %d are alike", epoch - 1, epoch);
    }
    sampler_free(&s);
}

/* A position of the stream has the same sample whether it is read in one piece, in batches that
 * span two epochs, backwards, or after another draw. */
static void any_position_gives_the_same(void) {
    enum { N = 11, ALL = 50 };
    Sampler s;
    int stream[ALL], ids[ALL];
    if (!CHECK(sampler_init(&s, 3, N, 0.6) == 0, "%s", error_message())) return;
    sampler_draw(&s, 4);
    sampler_ids(&s, stream, 0, ALL);
    for (int at = ALL - 1; at >= 0; at--) {
        int n = at % 7 + 1;
        if (at + n > ALL) n = ALL - at;
        sampler_draw(&s, 9);
        sampler_draw(&s, 4);
        sampler_ids(&s, ids, (uint64_t)at, n);
        CHECK(memcmp(ids, stream + at, (size_t)n * sizeof(int)) == 0, "position %d", at);
    }
    sampler_free(&s);
}

static void a_fraction_is_a_fresh_subset(void) {
    enum { N = 50, DRAWS = 40 };
    Sampler s;
    int chosen[N] = {0}, last[N] = {0};
    if (!CHECK(sampler_init(&s, 8, N, 0.3) == 0, "%s", error_message())) return;
    CHECK(s.used == 15, "%d used", s.used);
    for (int draw = 0; draw < DRAWS; draw++) {
        int drawn[N] = {0}, ids[30], differ = 0;
        sampler_draw(&s, (uint64_t)draw);
        sampler_ids(&s, ids, 0, 30);
        for (int i = 0; i < 30; i++) drawn[ids[i]]++;
        for (int i = 0; i < N; i++) {
            CHECK(drawn[i] == 0 || drawn[i] == 2, "draw %d: %d drawn %d times in two epochs", draw,
                  i, drawn[i]);
            chosen[i] += drawn[i] > 0;
            differ += (drawn[i] > 0) != last[i];
            last[i] = drawn[i] > 0;
        }
        CHECK(differ > 0, "draws %d and %d are alike", draw - 1, draw);
    }
    /* 12 expected, deviation 2.9 */
    for (int i = 0; i < N; i++)
        CHECK(chosen[i] > 0 && chosen[i] < 26, "%d chosen %d times", i, chosen[i]);
    sampler_free(&s);
}

/* Another order would give a resumed training other samples than an uninterrupted one, and no other
 * test would show it. */
static void orders_never_change(void) {
    static const struct {
        uint64_t seed, draw, position;
        double fraction;
        int ids[8];
    } rows[] = {
        {1, 0, 0, 1, {26, 1, 74, 99, 33, 22, 21, 37}},
        {1, 0, 92, 1, {24, 48, 6, 27, 14, 69, 15, 17}},
        {1234568, 0, 0, 1, {79, 4, 52, 83, 46, 58, 5, 12}},
        {1, 3, 0, 0.25, {44, 7, 70, 66, 11, 74, 72, 82}},
        {1, 4, 40, 0.25, {74, 56, 98, 10, 78, 34, 73, 87}},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        Sampler s;
        int ids[8];
        if (!CHECK(sampler_init(&s, rows[r].seed, 100, rows[r].fraction) == 0, "no sampler"))
            return;
        sampler_draw(&s, rows[r].draw);
        sampler_ids(&s, ids, rows[r].position, 8);
        for (int i = 0; i < 8; i++)
            CHECK(ids[i] == rows[r].ids[i], "row %zu: sample %d is %d", r, i, ids[i]);
        sampler_free(&s);
    }
}

/* With very many samples the order is computed position by position.  Pieces from all over an epoch
 * have different samples, and the next subset and the next epoch differ. */
static void many_samples_take_no_arrays(const void *row) {
    enum { N = SAMPLER_ARRAY + 1, PIECES = 128, PIECE = 1 << 12 };
    const double fraction = *(const double *)row;
    static unsigned char drawn[N];
    static int ids[PIECE], other[PIECE];
    Sampler s;
    if (!CHECK(sampler_init(&s, 5, N, fraction) == 0, "%s", error_message())) return;
    CHECK(!s.order && !s.subset, "arrays");
    memset(drawn, 0, sizeof drawn);
    sampler_draw(&s, 2);
    int twice = 0, beyond = 0;
    for (int p = PIECES - 1; p >= 0; p--) {
        sampler_ids(&s, ids, (uint64_t)p * (uint64_t)(s.used / PIECES), PIECE);
        for (int i = 0; i < PIECE; i++) {
            const bool outside = ids[i] < 0 || ids[i] >= N;
            beyond += outside;
            if (!outside) twice += drawn[ids[i]]++;
        }
    }
    CHECK(!twice && !beyond, "%d twice, %d outside", twice, beyond);
    sampler_ids(&s, other, (uint64_t)s.used, PIECE); /* the next epoch */
    CHECK(memcmp(ids, other, sizeof ids) != 0, "two epochs are alike");
    int common = 0;
    sampler_draw(&s, 3);
    sampler_ids(&s, other, 0, PIECE);
    for (int i = 0; i < PIECE; i++) common += drawn[other[i]];
    /* A piece of another subset has as many of those samples as by chance, within six deviations.
     */
    const double expected = (double)PIECE * PIECES * PIECE / N;
    if (fraction < 1)
        CHECK(fabs(common - expected) <= 6 * sqrt(expected), "%d drawn before, expected %.0f",
              common, expected);
    sampler_draw(&s, 2);
    sampler_ids(&s, other, 0, PIECE);
    CHECK(memcmp(ids, other, sizeof ids) == 0, "the same position, another sample");
    sampler_free(&s);
}

static void bounds_are_checked(void) {
    Sampler s;
    static const double bad[] = {0, -1, 1.01, 1e300};
    for (int i = 0; i < 4; i++)
        CHECK(sampler_init(&s, 1, 10, bad[i]) == -1 && strstr(error_message(), "fraction"),
              "fraction %g: \"%s\"", bad[i], error_message());
    CHECK(sampler_init(&s, 1, 0, 1) == -1, "no samples");
    if (!CHECK(sampler_init(&s, 1, 10, 1e-6) == 0, "%s", error_message())) return;
    sampler_draw(&s, 0);
    CHECK(s.used == 1, "at least one sample, not %d", s.used);
    /* 0.29 of 100 is a little less than 29 in double. */
    CHECK(sampler_used(100, 0.29) == 29 && sampler_used(11, 0.6) == 7, "not rounded");
    sampler_free(&s);
}

void test_sampler(void) {
    RUN(each_epoch_is_a_permutation);
    RUN(any_position_gives_the_same);
    RUN(a_fraction_is_a_fresh_subset);
    RUN(orders_never_change);
    RUN_ROW("many samples", many_samples_take_no_arrays, &(double){1});
    RUN_ROW("a part of many samples", many_samples_take_no_arrays, &(double){0.1});
    RUN(bounds_are_checked);
}
