/* Times training steps: opens a training as `bcd train` does, and repeats one batch. */
#pragma once

#include "../../dist/cost.h"
#include "../train/setup.h"

typedef struct {
    Setup setup;
    Batch batch;
    bool *active;          /* [blocks] of the submodel that is timed */
    BlockTimes *now;       /* [blocks] of the last step; NULL if only whole steps are timed */
    double update_ms;      /* of the last step */
    BlockTimes *min_times; /* [blocks] minimum over the steps: disturbances only ever add time */
    double min_update_ms;
} Bench;

/* How many steps: `warm` to warm up, then `min_steps`, then more up to `max_steps` while all of
 * them have taken less than enough_ms. */
typedef struct {
    int warm, min_steps, max_steps;
    double enough_ms;
} BenchPace;

/* Opens the training; with by_block, blocks and update are timed apart.  -1 and an error;
 * bench_close is safe either way. */
int bench_open(Bench *bench, const Options *options, bool by_block);
void bench_close(Bench *bench);

/* Activates a submodel, or with -1 all blocks, and runs steps.  Overwrites *step_ms with the
 * shortest time of a step.  -1 and an error. */
int bench_steps(Bench *bench, int submodel, BenchPace pace, double *step_ms);

/* Overwrites block[blocks] with the costs of a micro-batch of the steps that bench_steps has timed
 * by block: micro_batches times all passes, plus the updates, are step_ms.  The update is divided
 * by parameters; the rest of the step, mainly the loss, goes to the last block's forward pass. */
void bench_costs(BlockCost *block, const Bench *bench, int micro_batches, double step_ms);
