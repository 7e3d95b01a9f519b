/* Instructions of the tensor cores, and of what feeds them, one at a time: roundings are compared
 * bit by bit, and products of fragments with three loops.  A fault in one of them would otherwise
 * first show in the kernels that are made of them. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../test.h"
#include "device_case.h"
#include "fragments.h"

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

static bool is_nan(uint32_t bits) { return (bits & 0x7fffffffu) > 0x7f800000u; }
static bool is_infinite(uint32_t bits) { return (bits & 0x7fffffffu) == 0x7f800000u; }

/* Patterns with every sign, exponent and upper fraction, and lower bits around the ties. */
enum { PATTERNS = 8, COUNT = 65536 * PATTERNS };
static const uint32_t bf16_low[PATTERNS] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x4000, 0xc000};
static const uint32_t tf32_low[PATTERNS] = {0, 1, 0x0fff, 0x1000, 0x1001, 0x1fff, 0x3000, 0xf000};
static uint32_t pattern(const uint32_t *low, int i) {
    return (uint32_t)(i / PATTERNS) << 16 | low[i % PATTERNS];
}
/* Returns all of them on the device. */
static float *put_patterns(const uint32_t *low) {
    float *x = malloc(COUNT * sizeof *x);
    if (!x) abort();
    for (int i = 0; i < COUNT; i++) x[i] = bits_float(pattern(low, i));
    float *device = device_put(x, COUNT * sizeof *x);
    free(x);
    return device;
}

static void rounds_to_bf16(void) {
    float *x = put_patterns(bf16_low);
    unsigned short *y = malloc(COUNT * sizeof *y), *on_device = device_alloc(COUNT * sizeof *y);
    if (!y) abort();
    run_to_bf16(device_test_stream(), on_device, x, COUNT);
    device_test_wait();
    device_get(y, on_device, COUNT * sizeof *y);
    int wrong = 0;
    for (int i = 0; i < COUNT; i++) {
        const uint32_t bits = pattern(bf16_low, i);
        wrong += y[i] != (is_nan(bits)        ? 0x7fffu
                          : is_infinite(bits) ? bits >> 16
                                              : nearest(bits, 16, true) >> 16);
    }
    CHECK(wrong == 0, "%d of %d", wrong, COUNT);
    device_free(on_device);
    device_free(x);
    free(y);
}

/* The 13 lowest bits do not count. */
static void rounds_to_tf32(void) {
    float *x = put_patterns(tf32_low);
    unsigned *y = malloc(COUNT * sizeof *y), *on_device = device_alloc(COUNT * sizeof *y);
    if (!y) abort();
    run_to_tf32(device_test_stream(), on_device, x, COUNT);
    device_test_wait();
    device_get(y, on_device, COUNT * sizeof *y);
    int wrong = 0;
    for (int i = 0; i < COUNT; i++) {
        const uint32_t bits = pattern(tf32_low, i), got = y[i] & ~0x1fffu;
        wrong += is_nan(bits) ? !is_nan(got)
                              : got != (is_infinite(bits) ? bits : nearest(bits, 13, false));
    }
    CHECK(wrong == 0, "%d of %d", wrong, COUNT);
    device_free(on_device);
    device_free(x);
    free(y);
}

/* ---- products ---- */

/* a[m][k], b[k][n] and c[m][n], of small whole numbers, so that every sum is exact. */
typedef struct {
    int m, n, k;
    float *a, *b, *c; /* on the device */
    float host_a[64 * 96], host_b[96 * 64], host_c[64 * 128];
} Matrices;

static Matrices *matrices_create(int m, int n, int k) {
    Matrices *x = calloc(1, sizeof *x);
    if (!x) abort();
    x->m = m;
    x->n = n;
    x->k = k;
    for (int i = 0; i < m * k; i++) x->host_a[i] = (float)(i * 7 % 31 - 15);
    for (int i = 0; i < k * n; i++) x->host_b[i] = (float)(i * 11 % 31 - 15);
    x->a = device_put(x->host_a, sizeof(float) * (size_t)(m * k));
    x->b = device_put(x->host_b, sizeof(float) * (size_t)(k * n));
    x->c = device_put(x->host_c, sizeof(float) * (size_t)(m * n));
    return x;
}

static void matrices_free(Matrices *x) {
    device_free(x->a);
    device_free(x->b);
    device_free(x->c);
    free(x);
}

/* Checks that c is `begin` + a b, and clears it for the next run. */
static void check_product(Matrices *x, float begin) {
    int wrong = 0, first = -1;
    device_test_wait();
    device_get(x->host_c, x->c, sizeof(float) * (size_t)(x->m * x->n));
    fill_zero(device_test_stream(), x->c, sizeof(float) * (size_t)(x->m * x->n));
    for (int i = 0; i < x->m * x->n; i++) {
        float sum = begin;
        for (int j = 0; j < x->k; j++)
            sum += x->host_a[i / x->n * x->k + j] * x->host_b[j * x->n + i % x->n];
        if (x->host_c[i] == sum) continue;
        if (!wrong++) first = i;
    }
    CHECK(wrong == 0, "%d of %d are wrong, the first in row %d, column %d", wrong, x->m * x->n,
          first / x->n, first % x->n);
}

typedef void Product(Stream stream, float *c, const float *a, const float *b);
static void one_instruction(Product *run, int k, float begin) {
    Matrices *x = matrices_create(16, 8, k);
    for (int order = 0; order < device_orders(); order++) {
        device_choose_order(order);
        run(device_test_stream(), x->c, x->a, x->b);
        check_product(x, begin);
    }
    matrices_free(x);
}
static void mma_in_bf16(void) { one_instruction(run_mma_bf16, 16, 0.5f); }
static void mma_in_tf32(void) { one_instruction(run_mma_tf32, 8, 0.5f); }
static void mma_of_loaded_matrices(void) { one_instruction(run_ldmatrix, 16, 0); }

static void warpgroup_product(int columns, bool sums) {
    if (!device_has_wgmma()) SKIP("only Hopper has products of four warps");
    Matrices *x = matrices_create(64, columns, 16);
    for (int order = 0; order < device_orders(); order++) {
        device_choose_order(order);
        run_warpgroup(device_test_stream(), x->c, x->a, x->b, columns, sums);
        check_product(x, 0.5f);
    }
    matrices_free(x);
}
static void wgmma_rows_64(void) { warpgroup_product(64, false); }
static void wgmma_rows_128(void) { warpgroup_product(128, false); }
static void wgmma_sums_64(void) { warpgroup_product(64, true); }
static void wgmma_sums_128(void) { warpgroup_product(128, true); }

static void tiled_product(void) {
    Matrices *x = matrices_create(64, 64, 96);
    for (int order = 0; order < device_orders(); order++) {
        device_choose_order(order);
        run_product(device_test_stream(), x->c, x->a, x->b, x->k);
        check_product(x, 0);
    }
    matrices_free(x);
}

/* ---- matrices ---- */

static void loads_matrices(int count, bool transposed) {
    unsigned short x[256], y[256];
    for (int i = 0; i < 256; i++) x[i] = (unsigned short)(i * 253 + 1);
    const size_t bytes = sizeof *x * 64 * (size_t)count;
    unsigned short *from = device_put(x, bytes), *to = device_alloc(bytes);
    for (int order = 0; order < device_orders(); order++) {
        int wrong = 0;
        device_choose_order(order);
        fill_zero(device_test_stream(), to, bytes);
        run_matrices(device_test_stream(), to, from, count, transposed);
        device_test_wait();
        device_get(y, to, bytes);
        for (int i = 0; i < 64 * count; i++) {
            const int m = i / 64, row = i / 8 % 8, column = i % 8;
            wrong += y[i] != x[transposed ? m * 64 + column * 8 + row : i];
        }
        CHECK(wrong == 0, "%d of %d", wrong, 64 * count);
    }
    device_free(from);
    device_free(to);
}
static void four_matrices(void) { loads_matrices(4, false); }
static void four_transposed(void) { loads_matrices(4, true); }
static void two_transposed(void) { loads_matrices(2, true); }

void test_fragments(void);
void test_fragments(void) {
    RUN(rounds_to_bf16);
    RUN(rounds_to_tf32);
    RUN(four_matrices);
    RUN(four_transposed);
    RUN(two_transposed);
    RUN(mma_in_bf16);
    RUN(mma_in_tf32);
    RUN(mma_of_loaded_matrices);
    RUN(tiled_product);
    RUN(wgmma_rows_64);
    RUN(wgmma_rows_128);
    RUN(wgmma_sums_64);
    RUN(wgmma_sums_128);
    device_choose_order(0);
}
