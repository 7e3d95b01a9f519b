/* The SIMT layer runs correct kernels correctly, in all orders of threads and blocks, and reports
 * none of them. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../cuda/simt/control.h"
#include "../../ref/base/random.h"
#include "../test.h"
#include "kernels.h"

static void no_report(const char *what) {
    const char *error = simt_error();
    CHECK(!error, "%s: %s", what, error);
    simt_clear_error();
}

/* Returns whole numbers, whose sums are exact in any order. */
static float *whole(size_t count) {
    float *x = malloc(count * sizeof *x);
    for (size_t i = 0; i < count; i++) x[i] = (float)floor(17 * random_uniform(1, 2, i)) - 8;
    return x;
}

static void sums(void) {
    enum { ROWS = 5, N = 1001 };
    float *x = whole(ROWS * N), y[ROWS];
    for (int threads = 32; threads <= 1024; threads *= 2) {
        simt_poison(y, sizeof y);
        run_sum(y, x, ROWS, N, threads);
        no_report("sum");
        for (int r = 0; r < ROWS; r++) {
            float expected = 0;
            for (int i = 0; i < N; i++) expected += x[r * N + i];
            CHECK(y[r] == expected, "row %d, %d threads: %g, not %g", r, threads, (double)y[r],
                  (double)expected);
        }
    }
    free(x);
}

static void transposes(void) {
    static const int shapes[][2] = {{1, 1}, {32, 32}, {31, 33}, {97, 5}, {64, 130}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        int rows = shapes[s][0], columns = shapes[s][1], wrong = 0;
        float *x = whole((size_t)(rows * columns));
        float *y = malloc(sizeof(float) * (size_t)(rows * columns));
        simt_poison(y, sizeof(float) * (size_t)(rows * columns));
        run_transpose(y, x, rows, columns);
        no_report("transpose");
        for (int i = 0; i < rows * columns; i++)
            wrong += !(y[i % columns * rows + i / columns] == x[i]);
        CHECK(wrong == 0, "%d x %d: %d wrong", rows, columns, wrong);
        free(x);
        free(y);
    }
}

static void scans(void) {
    static const int threads[] = {1, 2, 31, 32, 33, 97, 512, 1024};
    int x[1024], y[1024];
    for (int i = 0; i < 1024; i++) x[i] = i * 37 % 101 - 50;
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        int n = threads[t], sum = 0, wrong = 0;
        run_scan(y, x, n, n);
        no_report("scan");
        for (int i = 0; i < n; i++) wrong += y[i] != (sum += x[i]);
        CHECK(wrong == 0, "%d threads: %d wrong", n, wrong);
    }
}

static void dynamic_shared(void) {
    static const size_t limits[] = {4 << 10, 48 << 10, 100 << 10, 227 << 10};
    for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
        float x[1000];
        int wrong = 0;
        for (int i = 0; i < 1000; i++) x[i] = (float)i;
        run_reverse(x, 1000, limits[l]);
        no_report("reverse");
        for (int i = 0; i < 1000; i++) wrong += !(x[i] == (float)(999 - i));
        CHECK(wrong == 0, "%zu bytes: %d wrong", limits[l], wrong);
    }
}

static void asynchronous_copies(void) {
    enum { TILES = 7 };
    float *x = aligned_alloc(16, sizeof(float) * TILES * 128), y[32], sum = 0, expected = 0;
    for (int i = 0; i < TILES * 128; i++) expected += x[i] = (float)(i % 29);
    simt_poison(y, sizeof y);
    run_pipeline(y, x, TILES);
    no_report("pipeline");
    for (int i = 0; i < 32; i++) sum += y[i];
    CHECK(sum == expected, "%g, not %g", (double)sum, (double)expected);
    free(x);
}

static void indices(void) {
    static const unsigned shapes[][2][3] = {{{1, 1, 1}, {1, 1, 1}},
                                            {{3, 5, 2}, {4, 3, 2}},
                                            {{7, 1, 3}, {33, 1, 2}},
                                            {{2, 2, 2}, {1, 8, 64}},
                                            {{97, 1, 1}, {1024, 1, 1}}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        size_t count = 1, wrong = 0;
        for (int i = 0; i < 6; i++) count *= shapes[s][i / 3][i % 3];
        unsigned *y = calloc(count, sizeof *y);
        run_numbers(y, shapes[s][0], shapes[s][1]);
        no_report("numbers");
        for (size_t i = 0; i < count; i++) wrong += y[i] != i + 1;
        CHECK(wrong == 0, "shape %zu: %zu threads were not run once", s, wrong);
        free(y);
    }
}

static void block_votes(void) {
    static const int threads[] = {1, 31, 64, 1000};
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        int n = threads[t], y;
        for (int voter = 0; voter <= n; voter += n > 1 ? n / 2 : 1) {
            run_block_vote(&y, n, voter);
            no_report("block vote");
            CHECK(y == (voter < n), "thread %d of %d: %d", voter, n, y);
        }
    }
}

static void atomics(void) {
    enum { BLOCKS = 5, THREADS = 96, N = BLOCKS * THREADS };
    int sum = 0, histogram[8] = {0};
    run_atomics(&sum, histogram, BLOCKS, THREADS);
    no_report("atomics");
    CHECK(sum == N * (N - 1) / 2, "the sum is %d", sum);
    for (int i = 0; i < 8; i++) CHECK(histogram[i] == N / 8, "%d of %d", histogram[i], i);
}

/* A kernel without barriers runs on one stack, since its threads need no switch. */
static void one_stack(void) {
    unsigned long long address[1024];
    int elsewhere = 0;
    run_stacks(address, 1024);
    for (int i = 1; i < 1024; i++) elsewhere += address[i] != address[0];
    CHECK(elsewhere == 0, "%d of 1024 threads had another stack", elsewhere);
}

/* ---- launches put aside ---- */

static struct {
    SimtRun *run;
    void *closure;
} recorded[2];
static int recorded_count;
static char captured; /* its address stands for a stream */

static bool record(void *stream, SimtRun *run, const void *closure, size_t bytes) {
    if (stream != &captured) return false;
    recorded[recorded_count].run = run;
    recorded[recorded_count].closure = aligned_alloc(16, (bytes + 15) / 16 * 16);
    memcpy(recorded[recorded_count++].closure, closure, bytes);
    return true;
}

static void deferred(void) {
    float x[300], row[300];
    for (int i = 0; i < 300; i++) x[i] = (float)i, row[i] = 1;
    simt_set_recorder(record);
    recorded_count = 0;
    run_scale(x, 2, 300, &captured);
    run_add_row(x, row, 300, &captured);
    CHECK(x[299] == 299, "a recorded launch has run: %g", (double)x[299]);
    run_scale(x, 2, 300, NULL); /* another stream */
    CHECK(x[299] == 598, "a launch on another stream has not run: %g", (double)x[299]);
    CHECK(recorded_count == 2, "%d launches recorded", recorded_count);
    for (int again = 0; again < 2; again++)
        for (int i = 0; i < recorded_count; i++) recorded[i].run(recorded[i].closure);
    CHECK(x[299] == (598 * 2 + 1) * 2 + 1 && x[0] == 3, "replayed: %g, %g", (double)x[299],
          (double)x[0]);
    for (int i = 0; i < recorded_count; i++) free(recorded[i].closure);
    simt_set_recorder(NULL);
    no_report("deferred");
}

/* ---- what it costs ---- */

/* Returns the processor time of this process, whatever else the machine does. */
static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Threads that never wait cost less than threads that wait nine times. The test compares minima of
 * many times, as other programs take caches and processors away at any time. */
static void speed(void) {
    enum { N = 1 << 18, BARRIERS = 9, BLOCK = 256, TIMES = 100, MOST = 1000 };
    float *x = whole(N);
    int scanned[BLOCK], ones[BLOCK] = {0};
    double no_barrier = INFINITY, barriers = INFINITY;
    for (int t = 0; t < MOST && (t < 3 || !(no_barrier < barriers)); t++) {
        double start = seconds();
        run_scale(x, 1, N, NULL);
        no_barrier = fmin(no_barrier, (seconds() - start) / N);
        start = seconds();
        for (int i = 0; i < TIMES; i++) run_scan(scanned, ones, BLOCK, BLOCK);
        barriers = fmin(barriers, (seconds() - start) / (TIMES * BLOCK));
    }
    test_note("%.0f million threads a second; %.1f ns per thread and barrier", 1e-6 / no_barrier,
              1e9 * barriers / BARRIERS);
    CHECK(no_barrier < barriers, "%g s without, %g s with barriers", no_barrier, barriers);
    no_report("speed");
    free(x);
}

typedef struct {
    const char *name;
    void (*function)(void);
} OrderRow;
static const OrderRow order_rows[] = {
    {"sums", sums},
    {"transposes", transposes},
    {"scans", scans},
    {"dynamic_shared", dynamic_shared},
    {"asynchronous_copies", asynchronous_copies},
    {"indices", indices},
    {"block_votes", block_votes},
    {"atomics", atomics},
    {"one_stack", one_stack},
    {"deferred", deferred},
};

static void in_every_order(const void *row) {
    const OrderRow *r = row;
    static const struct {
        SimtOrder order;
        uint64_t seed;
    } orders[] = {{SIMT_ASCENDING, 0}, {SIMT_DESCENDING, 0}, {SIMT_RANDOM, 1}, {SIMT_RANDOM, 2}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        simt_set_order(orders[i].order, orders[i].seed);
        r->function();
    }
    simt_set_order(SIMT_ASCENDING, 0);
}

void test_simt(void);
void test_simt(void) {
    simt_clear_error();
    for (size_t i = 0; i < sizeof order_rows / sizeof *order_rows; i++)
        RUN_ROW(order_rows[i].name, in_every_order, &order_rows[i]);
    RUN(speed);
}
