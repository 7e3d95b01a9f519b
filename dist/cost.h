/* Predicts the times of a training step's parts on a GPU that is not here, by the roofline: each
 * node takes the larger of its operations over the rate of operations, and its bytes over the rate
 * of the memory. */
#pragma once

#include "../ref/layout.h"
#include "cluster.h"

typedef struct {
    /* Of one micro-batch.  Recomputation counts as input gradient; where weight gradients are
     * deferred, it comes a second time and counts as weight gradient. */
    double pass_s[PASSES];
    double update_s;
    double out_bytes; /* of the block's output */
} BlockCost;

/* Overwrites cost[blocks] for micro-batches of settings->batch samples while the `active` blocks
 * train.  -1 and an error when memory runs out. */
int block_costs(BlockCost *cost, const Model *model, const StageSettings *settings,
                const bool *active, const Gpu *gpu, const Efficiency *efficiency);

/* Returns the bytes that the optimizer reads and writes to update the parameters first, ...,
 * end - 1. */
double update_bytes(const Model *model, const OptimizerSettings *optimizer, Precision precision,
                    int first, int end);
