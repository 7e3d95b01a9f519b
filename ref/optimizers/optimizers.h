/* An optimizer is a row in the tables of optimizer.c.  To add one, write its file in this folder,
 * declare it below, name it in optimizer.h, give it a row in both tables, and write its kernel in
 * cuda/ops/update.cu. */
#pragma once

#include "../optimizer.h"

typedef struct {
    OptimizerSettings defaults; /* without the kind, which is the index in the table */
    int (*state_vectors)(const OptimizerSettings *settings);
    /* lr is the rate of this step; weight_decay is 0 for parameters that do not decay. */
    OptimizerFactors (*factors)(const OptimizerSettings *settings, double lr, double weight_decay,
                                uint64_t t);
    /* The same as optimizer_update; param tells the tensor's shape. */
    void (*update)(const Param *param, real *p, real *const state[2], const real *g, real g_scale,
                   OptimizerFactors f);
} Optimizer;

extern const Optimizer optimizer_sgd, optimizer_adam, optimizer_adamw, optimizer_lion;

/* For tensors with fewer numbers than this, waking the other threads costs more than it saves. */
enum { WORTH_THREADS = 1 << 15 };
