/* Steps that are timed and otherwise lost: a training opened as any, and given the same batch again
 * and again. */
#ifndef EXPERIMENTS_BENCH_H
#define EXPERIMENTS_BENCH_H

#include "setup.h"

typedef struct {
    Setup setup;
    Batch batch;
    bool *active;          /* [blocks] the submodel that is timed */
    BlockTimes *now;       /* [blocks] of the last step; NULL where only whole steps are timed */
    double update_ms;      /* likewise */
    BlockTimes *min_times; /* [blocks] over the steps: what disturbs a machine only ever adds */
    double min_update_ms;
} Bench;

/* How many steps: some to warm up, then at most `max_steps`, but no more than `min_steps` once they
 * have taken enough_ms. */
typedef struct {
    int warm, min_steps, max_steps;
    double enough_ms;
} BenchPace;

/* Opens the training; by_block: time blocks and update apart.  -1 and an error; bench_close is safe
 * either way. */
int bench_open(Bench *bench, const Options *options, bool by_block);
void bench_close(Bench *bench);

/* Activates a submodel, -1: all blocks, and steps; *step_ms: the shortest.  -1 and an error. */
int bench_steps(Bench *bench, int submodel, BenchPace pace, double *step_ms);

/* The link between threads of this process: the time of an empty message, and bytes per second.
 * -1 and an error. */
int bench_transport(double *latency_s, double *rate);

#endif
