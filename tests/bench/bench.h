/* The parts of build/bench: how fast is each op, and each training step. */
#pragma once

#include "../../ref/model.h"

/* ---- measure.c --------------------------------------------------------------------------------
 */

double bench_now_ms(void);

/* From now on: one thread, and the processor time of this program instead of the time of day.  On a
 * machine that is busy with other things this is the measure that can be trusted. */
void bench_cpu_time(void);

/* Times of one thing.  A shared machine adds to a time and never takes away, so the median is shown
 * between the least and the most. */
typedef struct {
    int count;
    double ms[256];
} Times;

void times_add(Times *times, double ms); /* beyond the room there is: forgotten */
double times_median(const Times *times);
double times_least(const Times *times);
double times_most(const Times *times);

/* Calls run(context) until `least_ms` have passed and at least three times, after one call that is
 * not counted.  Short calls are timed several at once; the times are per call. */
Times bench_repeat(void (*run)(void *context), void *context, double least_ms);

/* What the machine can do at best, with all threads. */
typedef struct {
    double gflops;    /* multiply-adds in registers, two operations each */
    double gigabytes; /* copying arrays far beyond the caches: bytes read plus bytes written, a s */
} Machine;
Machine bench_machine(double least_ms);

/* A line on stderr that the next one replaces; nothing unless stderr is a terminal. */
void bench_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void bench_progress_end(void); /* clears the line */

/* ---- ops.c ------------------------------------------------------------------------------------
 */

/* Every node of a model, alike ones once, and the loss and the optimizers at its sizes.  0, or -1
 * and an error. */
int bench_ops(const char *spec, int batch, Machine machine, double least_ms);

/* ---- steps.c ----------------------------------------------------------------------------------
 */

/* Training steps of a model: full, and each third of its blocks, the first and the last block
 * frozen. */
int bench_steps(const char *spec, const char *optimizer, int batch, Machine machine, int rounds,
                int steps);

/* The same on demand, for tests/bench/peers.py: for each line "PART STEPS" on stdin (part 0: full,
 * 1 to 3: a third), prints the milliseconds of each step on one line.  One warm-up step before. */
int bench_serve(const char *spec, const char *optimizer, int batch);

/* ---- transports.c
 * ------------------------------------------------------------------------------------
 */

/* How long messages take between two ranks of this machine, over each kind of transport. */
int bench_transport(double least_ms);

/* ---- tokens.c -----------------------------------------------------------------------------------
 */

/* GPT-2's tokenizer on WikiText-2, words known and not, and on a megabyte without a space.  Says so
 * where these files are not in `data_dir`. */
int bench_tokens(const char *data_dir, double least_ms);
