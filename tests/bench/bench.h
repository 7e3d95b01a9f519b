/* The parts of build/bench, which measures how fast each op and each training step is. */
#pragma once

#include "../../ref/model.h"

/* ---- measure.c ------------------------------------------------------------------------------- */

double bench_now_ms(void);

/* Switches to one thread, and to the processor time of this program instead of the time of day. On
 * a machine that is busy with other things only this measure can be trusted. */
void bench_cpu_time(void);

/* Times of repeated runs of one thing. Other programs on the machine add to a time and never take
 * away, so the median is shown between the minimum and the maximum. */
enum { TIMES_MOST = 1024 };
typedef struct {
    int count;
    double ms[TIMES_MOST];
} Times;

void times_add(Times *times, double ms); /* a time for which there is no space is dropped */
double times_median(const Times *times);
double times_min(const Times *times);
double times_max(const Times *times);

/* Calls run(context) until `min_ms` have passed and at least three times, after one call that is
 * not counted. Calls too short for the clock are timed several at once; the times are per call. */
Times bench_repeat(void (*run)(void *context), void *context, double min_ms);

/* The peak rates of the machine with all threads, measured. */
typedef struct {
    double gflops;    /* multiply-adds in registers, two operations each */
    double gigabytes; /* bytes read plus written per second, by copies larger than the caches */
} Machine;
Machine bench_machine(double min_ms);

/* Prints a line on stderr that the next one replaces; prints nothing unless stderr is a
 * terminal. */
void bench_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void bench_progress_end(void); /* clears the line */

/* ---- ops.c ----------------------------------------------------------------------------------- */

/* Times every node of a model (equal ones once), and the loss and the optimizers at its sizes.
 * Returns 0; on failure -1, with the error set. */
int bench_ops(const char *spec, int batch, Machine machine, double min_ms);

/* ---- steps.c --------------------------------------------------------------------------------- */

/* Times training steps of a model: the full update, and each third of its blocks, where the first
 * and the last block are frozen. */
int bench_steps(const char *spec, const char *optimizer, int batch, Machine machine, int rounds,
                int steps);

/* Times steps on demand, for tests/bench/peers.py. For each line "PART STEPS" on stdin (part 0 is
 * the full update, 1 to 3 are the thirds) it makes one step to warm up and prints the milliseconds
 * of each further step on one line. */
int bench_serve(const char *spec, const char *optimizer, int batch);

/* ---- tokens.c -------------------------------------------------------------------------------- */

/* Times GPT-2's tokenizer on WikiText-2, created anew for each call and once for all, and on a
 * megabyte without a space. Where `data_dir` lacks these files it says so. */
int bench_tokens(const char *data_dir, double min_ms);
