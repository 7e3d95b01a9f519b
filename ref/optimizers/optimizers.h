/* An optimizer is a row in the tables of optimizer.c.  To add one, write its file in this folder,
 * declare it below, name it in optimizer.h, give it a row in both tables, and write its kernel in
 * cuda/ops/update.cu. */
#pragma once

#include "optimizer.h"

typedef struct {
    OptimizerSettings defaults; /* without the kind, which is the index in the table */
    double lr[OPTIMIZER_USES];  /* where it differs from defaults.lr; else 0 */
    int state_vectors;
    bool decoupled_decay; /* weight decay is a step of its own instead of part of the gradient */
    /* The same as optimizer_update, with the factors computed; param tells the tensor's shape. */
    void (*update)(const Param *param, real *p, real *const state[2], const real *g, real g_scale,
                   OptimizerFactors f);
} Optimizer;

extern const Optimizer optimizer_sgd, optimizer_adam, optimizer_adamw, optimizer_lion;
