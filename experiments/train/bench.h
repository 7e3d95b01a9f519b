/* Steps measured here, and what a simulation of them needs. */
#ifndef EXPERIMENTS_TIMING_BENCH_H
#define EXPERIMENTS_TIMING_BENCH_H

#include "../../dist/simulate.h"
#include "../train/setup.h"

/* A small training. */
typedef struct {
    const char *model, *data, *optimizer, *batch;
} BenchNetwork;

typedef struct {
    int submodels, parts; /* micro-batches of a step */
    int ranks;            /* threads that are a pipeline; 0: one stage without */
    PlacementKind placement;
    bool cached; /* the frozen prefix, kept */
    int tries;   /* steps to measure, fewer if they take long */
} BenchMethod;

enum { BENCH_SUBMODELS = 8 };

typedef struct {
    double step_ms[BENCH_SUBMODELS], mean_ms; /* the least of a few steps */
    BlockCost *block;                         /* [submodels][blocks], unless it was a pipeline */
} BenchTimes;

/* Opens and times a training on one thread per rank.  setup_free(setup) and free(times->block)
 * whatever it returns.  -1 and an error. */
int bench_run(BenchTimes *times, Setup *setup, const Options *asked, const BenchNetwork *network,
              const BenchMethod *method);

/* The link between threads of this process: the time of an empty message, and bytes per second.
 * -1 and an error. */
int bench_link(double *latency_s, double *rate);

/* The step of a pipeline, simulated from the block times of one stage.  -1 and an error. */
int bench_simulate(double *step_ms, const Setup *pipeline, const BlockCost *block,
                   const BenchMethod *method, double latency_s, double rate);

#endif
