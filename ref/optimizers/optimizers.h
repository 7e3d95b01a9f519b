/* The row of an optimizer in the table of optimizer.c; ref/README.md says how to add one. */
#pragma once

#include "optimizer.h"

typedef struct Optimizer {
    OptimizerSettings defaults; /* without the kind, which is the index in the table */
    double lr[OPTIMIZER_USES];  /* where it differs from defaults.lr; else 0 */
    int state_vectors;          /* STATE_VECTORS at most */
    bool decoupled_decay; /* weight decay is a step of its own instead of part of the gradient */
    /* Updates what is no matrix; NULL: this one updates all.  Its decay is this one's: decoupled in
     * both or in neither, because optimizer_factors knows no parameter. */
    const struct Optimizer *others;
    /* Return the numbers of workspace, and the floating-point operations of the products, that the
     * update of a parameter takes; NULL: 0. */
    size_t (*workspace)(const Param *param);
    double (*flops)(const Param *param);
    /* The same as optimizer_update, with the factors computed; param tells the tensor's shape. */
    void (*update)(const Param *param, real *p, real *const state[STATE_VECTORS], const real *g,
                   real g_scale, OptimizerFactors f, real *workspace);
} Optimizer;

extern const Optimizer optimizer_sgd, optimizer_adam, optimizer_adamw, optimizer_lion,
    optimizer_muon;
