/* An optimizer is a row of optimizer.c's table; each file of this folder has one, or two kin.  To
 * add one: its file, a name for it in optimizer.h, its line in the table of optimizer.c, and its
 * kernel in cuda/ops/update.cu. */
#ifndef REF_OPTIMIZERS_OPTIMIZERS_H
#define REF_OPTIMIZERS_OPTIMIZERS_H

#include "../optimizer.h"

typedef struct {
    OptimizerSettings defaults; /* those that are not zero; the kind is its place in the table */
    int (*state_vectors)(const OptimizerSettings *settings);
    /* lr is this step's, weight_decay this parameter's: 0 where it does not decay. */
    OptimizerFactors (*factors)(const OptimizerSettings *settings, double lr, double weight_decay,
                                uint64_t t);
    /* As optimizer_update; param tells the shape. */
    void (*update)(const Param *param, real *p, real *const state[2], const real *g, real g_scale,
                   OptimizerFactors f);
} Optimizer;

extern const Optimizer optimizer_sgd, optimizer_adam, optimizer_adamw, optimizer_lion;

/* Tensors smaller than this are not worth waking the other threads for. */
enum { WORTH_THREADS = 1 << 15 };

#endif
