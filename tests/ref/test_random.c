/* Philox against the known answers published with Random123, and the distributions made of it. */
#include <math.h>
#include <string.h>

#include "../../ref/base/random.h"
#include "../test.h"

static void known_answers(void) {
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } rows[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (int i = 0; i < 3; i++) {
        uint32_t out[4];
        philox4x32(out, rows[i].counter, rows[i].key);
        CHECK(memcmp(out, rows[i].out, sizeof out) == 0, "row %d: %08x %08x %08x %08x", i, out[0],
              out[1], out[2], out[3]);
    }
}

static void normal_moments(void) {
    enum { N = 20000 };
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < N; i++) {
        double x = random_normal(7, STREAM_INIT, i);
        sum += x;
        squares += x * x;
    }
    CHECK(fabs(sum / N) < 4 / sqrt(N), "mean %g", sum / N);
    CHECK(fabs(squares / N - 1) < 4 * sqrt(2.0 / N), "variance %g", squares / N);
}

static void permutation_is_one(void) {
    enum { N = 1000 };
    int order[N], other[N], found[N] = {0};
    random_permutation(order, N, 3, STREAM_SHUFFLE, 1);
    random_permutation(other, N, 3, STREAM_SHUFFLE, 2);
    int fixed = 0;
    for (int i = 0; i < N; i++) {
        found[order[i]]++;
        fixed += order[i] == i;
    }
    for (int i = 0; i < N; i++) CHECK(found[i] == 1, "%d stands %d times", i, found[i]);
    CHECK(fixed < 10, "%d of %d in place", fixed, N);
    CHECK(memcmp(order, other, sizeof order) != 0, "two epochs are shuffled alike");
}

static void below_is_below(void) {
    int counts[7] = {0};
    for (uint64_t i = 0; i < 7000; i++) counts[random_below(1, 2, i, 7)]++;
    for (int i = 0; i < 7; i++) CHECK(counts[i] > 850 && counts[i] < 1150, "%d: %d", i, counts[i]);
}

void test_random(void) {
    RUN(known_answers);
    RUN(normal_moments);
    RUN(permutation_is_one);
    RUN(below_is_below);
}
