/* Philox against the known answers published with Random123, and the distributions made of it. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
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

/* Tests every size, also those below the square on which the network permutes. */
static void permuted_is_a_permutation(void) {
    enum { MAX = 300 };
    for (int n = 1; n <= MAX; n++) {
        int found[MAX] = {0}, moved = 0;
        for (int i = 0; i < n; i++) {
            const int at = random_permuted(i, n, 3, STREAM_SHUFFLE, 1);
            if (!CHECK(at >= 0 && at < n, "%d of %d", at, n)) return;
            found[at]++;
            moved += at != i;
        }
        for (int i = 0; i < n; i++) CHECK(found[i] == 1, "%d of %d: %d times", i, n, found[i]);
        CHECK(n < 10 || moved > n / 2, "%d of %d have moved", moved, n);
    }
    /* Another one would let a resumed training see other samples. */
    static const int known[4] = {42, 7, 67, 97};
    for (int i = 0; i < 4; i++) {
        const int at = random_permuted(i, 100, 3, STREAM_SHUFFLE, 1);
        CHECK(at == known[i], "element %d is %d", i, at);
    }
    CHECK(random_permuted(INT_MAX - 1, INT_MAX, 3, STREAM_SHUFFLE, 1) >= 0, "the largest");
}

/* Every permutation of four comes as often as the others, and so does every neighbour of a number
 * in a larger one; within six deviations. */
static void permuted_is_uniform(void) {
    enum { EACH = 500, LARGE = 50 };
    int order[4 * 4 * 4] = {0}, step[LARGE] = {0};
    for (int number = 0; number < 24 * EACH; number++) {
        int at[3];
        for (int i = 0; i < 3; i++)
            at[i] = random_permuted(i, 4, 7, STREAM_SHUFFLE, (uint64_t)number);
        order[at[0] * 16 + at[1] * 4 + at[2]]++;
        const int difference = random_permuted(8, LARGE, 7, STREAM_SHUFFLE, (uint64_t)number) -
                               random_permuted(7, LARGE, 7, STREAM_SHUFFLE, (uint64_t)number);
        step[(difference + LARGE) % LARGE]++;
    }
    int orders = 0;
    for (int i = 0; i < 64; i++) {
        orders += order[i] > 0;
        CHECK(!order[i] || abs(order[i] - EACH) < 6 * sqrt(EACH), "order %d: %d", i, order[i]);
    }
    CHECK(orders == 24, "%d orders", orders);
    const double each = 24.0 * EACH / (LARGE - 1);
    for (int d = 1; d < LARGE; d++)
        CHECK(fabs(step[d] - each) < 6 * sqrt(each), "step %d: %d, not %g", d, step[d], each);
}

static void random_below_stays_below(void) {
    int counts[7] = {0};
    for (uint64_t i = 0; i < 7000; i++) counts[random_below(1, 2, i, 7)]++;
    for (int i = 0; i < 7; i++) CHECK(counts[i] > 850 && counts[i] < 1150, "%d: %d", i, counts[i]);
}

void test_random(void) {
    RUN(known_answers);
    RUN(normal_moments);
    RUN(permutation_is_one);
    RUN(permuted_is_a_permutation);
    RUN(permuted_is_uniform);
    RUN(random_below_stays_below);
}
