/* What a warp does together: shuffles and votes are compared with their definitions. */
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

void test_simt_warps(void);
void test_simt_warps(void) {
    simt_clear_error();
    RUN(shuffles);
    RUN(half_warps);
    RUN(votes);
    simt_set_order(SIMT_ASCENDING, 0);
}
