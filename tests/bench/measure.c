#include <omp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../ref/fast/simd.h"
#include "bench.h"

static clockid_t clock_used = CLOCK_MONOTONIC;

void bench_cpu_time(void) {
    omp_set_num_threads(1);
    clock_used = CLOCK_PROCESS_CPUTIME_ID;
}

double bench_now_ms(void) {
    struct timespec t;
    clock_gettime(clock_used, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

void times_add(Times *times, double ms) {
    if (times->count < TIMES_MOST) times->ms[times->count++] = ms;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double nth(const Times *times, int n) {
    Times sorted = *times;
    qsort(sorted.ms, (size_t)sorted.count, sizeof *sorted.ms, ascending);
    return sorted.ms[n];
}

double times_median(const Times *times) { return nth(times, times->count / 2); }
double times_min(const Times *times) { return nth(times, 0); }
double times_max(const Times *times) { return nth(times, times->count - 1); }

Times bench_repeat(void (*run)(void *context), void *context, double min_ms) {
    const double clock_ms = 0.5; /* below this a call is too short to be timed alone */
    Times times = {0};
    double start = bench_now_ms();
    run(context);
    double once = bench_now_ms() - start;
    int calls = once < clock_ms ? (int)(clock_ms / (once + 1e-4)) + 1 : 1;
    for (double begin = bench_now_ms(); times.count < 3 || bench_now_ms() - begin < min_ms;) {
        if (times.count == TIMES_MOST) break;
        start = bench_now_ms();
        for (int i = 0; i < calls; i++) run(context);
        times_add(&times, (bench_now_ms() - start) / calls);
    }
    return times;
}

/* Independent chains of multiply-adds: enough to hide their latency, few enough for 16
 * registers. */
enum { CHAINS = 12, LINKS = 200000 };

static void multiply_add(void *context) {
    double *sums = context;
#pragma omp parallel
    {
        vec acc[CHAINS], a = (vec){0} + (real)0.999, b = (vec){0} + (real)1e-3;
        for (int c = 0; c < CHAINS; c++) acc[c] = a + (real)c;
        for (int i = 0; i < LINKS; i++)
#pragma GCC unroll 12
            for (int c = 0; c < CHAINS; c++) acc[c] = acc[c] * a + b;
        for (int c = 1; c < CHAINS; c++) acc[0] += acc[c];
        /* Storing the sums keeps the compiler from removing the loop. */
        sums[omp_get_thread_num()] = (double)acc[0][0];
    }
}

typedef struct {
    real *to, *from;
    size_t count;
} Copy;

static void copy(void *context) {
    const Copy *c = context;
    real *restrict to = c->to;
    const real *restrict from = c->from;
#pragma omp parallel for
    for (size_t i = 0; i < c->count; i++) to[i] = from[i] + (real)1;
}

Machine bench_machine(double min_ms) {
    Machine machine = {0, 0};
    int threads = omp_get_max_threads();
    double *sums = calloc((size_t)threads, sizeof *sums);
    Copy c = {NULL, NULL, (size_t)32 << 20};
    c.to = calloc(c.count, sizeof *c.to);
    c.from = calloc(c.count, sizeof *c.from);
    if (sums && c.to && c.from) {
        /* A page that was never written is mapped to the one shared page of zeros, which stays in
         * the cache; so every page is written first. */
        for (size_t i = 0; i < c.count; i++) c.from[i] = c.to[i] = (real)i;
        Times fma = bench_repeat(multiply_add, sums, min_ms);
        Times move = bench_repeat(copy, &c, min_ms);
        double operations = 2.0 * LANES * CHAINS * LINKS * threads;
        machine.gflops = operations / times_min(&fma) * 1e-6;
        machine.gigabytes = 2.0 * (double)(c.count * sizeof(real)) / times_min(&move) * 1e-6;
    }
    free(sums);
    free(c.to);
    free(c.from);
    return machine;
}

void bench_progress(const char *format, ...) {
    if (!isatty(2)) return;
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "\r\033[K");
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fflush(stderr);
}

void bench_progress_end(void) {
    if (isatty(2)) fprintf(stderr, "\r\033[K");
}
