/* Stochastic gradient descent, in PyTorch's form, which the BCD paper uses:
 *
 *     g = g + weight_decay p
 *     v = momentum v + g          without momentum v is g, and there is no state
 *     p = p - lr v */
#include "optimizers.h"

static void plain_update(const Param *param, real *restrict p, const real *restrict g, real g_scale,
                         OptimizerFactors f) {
#pragma omp parallel for if (param->count > WORTH_THREADS)
    for (size_t i = 0; i < param->count; i++)
        p[i] -= f.lr * (g_scale * g[i] + f.coupled_decay * p[i]);
}

static void momentum_update(const Param *param, real *restrict p, real *restrict v,
                            const real *restrict g, real g_scale, OptimizerFactors f) {
#pragma omp parallel for if (param->count > WORTH_THREADS)
    for (size_t i = 0; i < param->count; i++) {
        v[i] = f.momentum * v[i] + (g_scale * g[i] + f.coupled_decay * p[i]);
        p[i] -= f.lr * v[i];
    }
}

static void sgd_update(const Param *param, real *p, real *const state[2], const real *g,
                       real g_scale, OptimizerFactors f) {
    if (state[0])
        momentum_update(param, p, state[0], g, g_scale, f);
    else
        plain_update(param, p, g, g_scale, f);
}

const Optimizer optimizer_sgd = {
    .defaults = {.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-5},
    .state_vectors = 1, /* see optimizer_state_vectors */
    .update = sgd_update,
};
