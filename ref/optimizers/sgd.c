/* Stochastic gradient descent, in PyTorch's form:
 *
 *     g = g + weight_decay p
 *     v = momentum v + g          without momentum v is g, and there is no state
 *     p = p - lr v */
#include "optimizers.h"

static void sgd_update(const Param *param, real *restrict p, real *const state[STATE_VECTORS],
                       const real *restrict g, real g_scale, OptimizerFactors f, real *workspace) {
    (void)workspace;
    real *restrict v = state[0];
#pragma omp parallel for if (param->count > WORTH_THREADS)
    for (size_t i = 0; i < param->count; i++) {
        real step = g_scale * g[i] + f.coupled_decay * p[i];
        if (v) step = v[i] = f.momentum * v[i] + step;
        p[i] -= f.lr * step;
    }
}

const Optimizer optimizer_sgd = {
    .defaults = {.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-5},
    .lr = {[USE_TUNING] = 0.04},
    .state_vectors = 1, /* see optimizer_state_vectors */
    .update = sgd_update,
};
