/* What a warp does together: shuffles and votes are compared with their definitions, roundings bit
 * by bit, and products of fragments with three loops. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../cuda/simt/control.h"
#include "../test.h"
#include "kernels.h"

static void no_report(const char *what) {
    const char *error = simt_error();
    CHECK(!error, "%s: %s", what, error);
    simt_clear_error();
}

/* Sets one of the orders of threads, in all of which the results must be the same. */
static void set_order(int i) { simt_set_order((SimtOrder)(i % SIMT_ORDERS), (uint64_t)i); }

/* ---- shuffles, votes ---- */

/* Returns the lane that `lane` reads, as the CUDA C++ Programming Guide defines it. */
static int source_of(int kind, int lane, int amount) {
    if (kind == SHUFFLE_INDEX) return (amount + lane) % 32;
    if (kind == SHUFFLE_UP) return lane < amount ? lane : lane - amount;
    return lane ^ amount;
}

static void shuffles(void) {
    int x[32], y[32], round = 0;
    for (int i = 0; i < 32; i++) x[i] = 1000 + i;
    for (int kind = 0; kind < SHUFFLES; kind++)
        for (int amount = 0; amount < 32; amount++) {
            set_order(round++);
            run_shuffle(kind, y, x, amount);
            for (int i = 0; i < 32; i++)
                CHECK(y[i] == x[source_of(kind, i, amount)], "kind %d, amount %d: lane %d got %d",
                      kind, amount, i, y[i]);
        }
    long long wide[32], turned[32];
    for (int i = 0; i < 32; i++) wide[i] = ((long long)i << 40) + 7 - i;
    run_shuffle_long(turned, wide);
    for (int i = 0; i < 32; i++) CHECK(turned[i] == wide[31 - i], "lane %d of 64 bits", i);
    no_report("shuffles");
}

static void half_warps(void) {
    int x[32], y[32], s[32];
    for (int i = 0; i < 32; i++) x[i] = i * i;
    int sum = 0;
    for (int i = 16; i < 32; i++) sum += x[i];
    for (int i = 0; i < 32; i++) s[i] = i < 16 ? x[(i + 8) % 16] : sum;
    for (int order = 0; order < 6; order++) {
        set_order(order);
        run_halves(y, x);
        no_report("halves");
        for (int i = 0; i < 32; i++)
            CHECK(y[i] == s[(31 - i) ^ 1], "lane %d: %d, not %d", i, y[i], s[(31 - i) ^ 1]);
    }
}

static void votes(void) {
    int x[32], y[32][2];
    for (int i = 0; i < 32; i++) x[i] = i == 20 ? 100 : i;
    for (int order = 0; order < 6; order++) {
        set_order(order);
        for (int limit = 0; limit <= 100; limit += 50) {
            run_votes(y, x, limit);
            no_report("votes");
            for (int i = 0; i < 32; i++)
                CHECK(y[i][0] == (limit < 100) && y[i][1] == (i < 8 && limit == 0),
                      "above %d: lane %d: %d %d", limit, i, y[i][0], y[i][1]);
        }
    }
}

/* ---- roundings ---- */

static float bits_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Rounds x to a format with `dropped` fewer bits of fraction by comparing distances: to the nearer
 * of its two neighbours; a tie goes to the even one, or away from zero. */
static uint32_t nearest(uint32_t bits, int dropped, bool tie_to_even) {
    uint32_t unit = 1u << dropped, low = bits & ~(unit - 1), high = low + unit;
    uint32_t sign = bits & 0x80000000u;
    double x = fabs((double)bits_float(bits));
    double below = fabs((double)bits_float(low)), above;
    /* The format's next value after the largest would be infinity's, if the exponents continued:
     * values from the midpoint on round to infinity. */
    if ((high & 0x7fffffffu) == 0x7f800000u)
        above = ldexp(1, 128);
    else
        above = fabs((double)bits_float(high));
    if (x - below < above - x) return low;
    if (x - below > above - x) return high;
    return (tie_to_even ? low / unit % 2 == 0 : false) ? low : (high | sign);
}

enum { PATTERNS = 8 };
static void roundings(void) {
    /* Patterns with every sign, exponent and upper fraction, and lower bits around the ties. */
    static const uint32_t bf16_low[PATTERNS] = {0,      1,      0x7fff, 0x8000,
                                                0x8001, 0xffff, 0x4000, 0xc000};
    static const uint32_t tf32_low[PATTERNS] = {0,      1,      0x0fff, 0x1000,
                                                0x1001, 0x1fff, 0x3000, 0xf000};
    const int count = 65536 * PATTERNS;
    float *x = malloc((size_t)count * sizeof *x);
    unsigned short *y = malloc((size_t)count * sizeof *y);
    unsigned *z = malloc((size_t)count * sizeof *z);
    int wrong_bf16 = 0, wrong_tf32 = 0;
    for (int i = 0; i < count; i++)
        x[i] = bits_float((uint32_t)(i / PATTERNS) << 16 | bf16_low[i % PATTERNS]);
    run_to_bf16(y, x, count);
    for (int i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)(i / PATTERNS) << 16 | bf16_low[i % PATTERNS];
        bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
        uint32_t expected = nan                                   ? 0x7fffu
                            : (bits & 0x7fffffffu) == 0x7f800000u ? bits >> 16
                                                                  : nearest(bits, 16, true) >> 16;
        wrong_bf16 += y[i] != expected;
    }
    for (int i = 0; i < count; i++)
        x[i] = bits_float((uint32_t)(i / PATTERNS) << 16 | tf32_low[i % PATTERNS]);
    run_to_tf32(z, x, count);
    for (int i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)(i / PATTERNS) << 16 | tf32_low[i % PATTERNS];
        bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
        uint32_t expected = (bits & 0x7fffffffu) == 0x7f800000u ? bits : nearest(bits, 13, false);
        wrong_tf32 += nan ? !isnan(bits_float(z[i])) : z[i] != expected;
    }
    CHECK(wrong_bf16 == 0, "bf16: %d of %d", wrong_bf16, count);
    CHECK(wrong_tf32 == 0, "tf32: %d of %d", wrong_tf32, count);
    no_report("roundings");
    free(x);
    free(y);
    free(z);
}

/* ---- fragments ---- */

static void check_product(const char *name, const float *c, const float *a, const float *b, int m,
                          int n, int k, float begin) {
    int wrong = 0;
    for (int i = 0; i < m * n; i++) {
        float sum = begin;
        for (int j = 0; j < k; j++) sum += a[i / n * k + j] * b[j * n + i % n];
        wrong += !(c[i] == sum);
    }
    CHECK(wrong == 0, "%s: %d of %d elements", name, wrong, m * n);
    no_report(name);
}

static void fill(float *x, int count, int step) {
    for (int i = 0; i < count; i++) x[i] = (float)(i * step % 31 - 15);
}

static void fragment_products(void) {
    float a[256], b[128], c[128];
    fill(a, 256, 7);
    fill(b, 128, 11);
    for (int order = 0; order < 4; order++) {
        set_order(order);
        run_mma_bf16(c, a, b);
        check_product("mma_bf16", c, a, b, 16, 8, 16, 0.5f);
        run_mma_tf32(c, a, b);
        check_product("mma_tf32", c, a, b, 16, 8, 8, 0.5f);
        run_ldmatrix(c, a, b);
        check_product("ldmatrix", c, a, b, 16, 8, 16, 0);
    }
}

static void warpgroup_products(void) {
    static float a[64 * 16], b[16 * 128], c[64 * 128];
    fill(a, 64 * 16, 7);
    fill(b, 16 * 128, 11);
    for (int variant = 0; variant < 4; variant++) {
        const int columns = variant / 2 ? 128 : 64;
        set_order(variant);
        run_warpgroup(c, a, b, columns, variant % 2);
        check_product(variant % 2 ? "wgmma_sums" : "wgmma_rows", c, a, b, 64, columns, 16, 0.5f);
    }
}

static void matrices(void) {
    unsigned short x[256], y[256];
    for (int i = 0; i < 256; i++) x[i] = (unsigned short)(i * 253 + 1);
    for (int variant = 0; variant < 3; variant++) {
        bool transposed = variant > 0;
        int count = variant < 2 ? 4 : 2, wrong = 0;
        set_order(variant);
        run_matrices(y, x, count, transposed);
        for (int i = 0; i < 64 * count; i++) {
            int m = i / 64, row = i / 8 % 8, column = i % 8;
            wrong += y[i] != x[transposed ? m * 64 + column * 8 + row : i];
        }
        CHECK(wrong == 0, "variant %d: %d wrong", variant, wrong);
    }
    no_report("matrices");
}

static void tiled_product(void) {
    static float a[64 * 96], b[96 * 64], c[64 * 64];
    fill(a, 64 * 96, 7);
    fill(b, 96 * 64, 5);
    for (int order = 0; order < 4; order++) {
        set_order(order);
        simt_poison(c, sizeof c);
        run_product(c, a, b, 96);
        check_product("product", c, a, b, 64, 64, 96, 0);
    }
}

void test_simt_warps(void);
void test_simt_warps(void) {
    simt_clear_error();
    RUN(shuffles);
    RUN(half_warps);
    RUN(votes);
    RUN(roundings);
    RUN(fragment_products);
    RUN(warpgroup_products);
    RUN(matrices);
    RUN(tiled_product);
    simt_set_order(SIMT_ASCENDING, 0);
}
