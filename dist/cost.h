/* How long the parts of a training step take on a GPU that is not here: the larger of operations
 * over their rate and bytes over the memory's rate (the roofline), node by node. */
#ifndef DIST_COST_H
#define DIST_COST_H

#include "../ref/layout.h"
#include "cluster.h"

typedef struct {
    double pass_s[PASSES]; /* of one micro-batch; with recompute, the forward pass that is made */
                           /* again counts to the input gradient */
    double update_s;
    double out_bytes; /* of the block's output: what goes to the next rank */
} BlockCost;

/* Fills cost[blocks] for micro-batches of settings->batch samples, while `active` trains.  -1 and
 * an error when memory runs out. */
int block_costs(BlockCost *cost, const Model *model, const StageSettings *settings,
                const bool *active, const Gpu *gpu, const Efficiency *efficiency);

/* Bytes the optimizer reads and writes per parameter it updates. */
double update_bytes(const OptimizerSettings *optimizer, Precision precision);

#endif
