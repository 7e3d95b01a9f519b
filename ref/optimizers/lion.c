/* Lion (Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", Algorithm 2):
 *
 *     c = beta1 m + (1 - beta1) g
 *     p = p - lr (sign(c) + weight_decay p)
 *     m = beta2 m + (1 - beta2) g
 *
 * Every element moves by lr, whatever the size of its gradient, or stays if c is 0.  Where c is NaN
 * so is its sign: the parameter becomes NaN, and the next loss shows it.  The only state is m, so
 * BCD with three submodels takes W (1 + 2/3) bytes where with Adam it takes W (1 + 3/3).
 */
#include "optimizers.h"

static void lion_update(const Param *param, real *restrict p, real *const state[STATE_VECTORS],
                        const real *restrict g, real g_scale, OptimizerFactors f, real *workspace) {
    (void)workspace;
    real *restrict m = state[0];
#pragma omp parallel for if (param->count > WORTH_THREADS)
    for (size_t i = 0; i < param->count; i++) {
        real gi = g_scale * g[i];
        real c = f.beta1 * m[i] + f.one_minus_beta1 * gi;
        real sign = c > 0 ? 1 : c < 0 ? -1 : c;
        p[i] -= f.decay_step * p[i] + f.lr * sign;
        m[i] = f.beta2 * m[i] + f.one_minus_beta2 * gi;
    }
}

/* The defaults are those of the authors' code. */
const Optimizer optimizer_lion = {
    .defaults = {.lr = 1e-4, .beta1 = 0.9, .beta2 = 0.99},
    .lr = {[USE_TUNING] = 1e-5},
    .state_vectors = 1,
    .decoupled_decay = true,
    .update = lion_update,
};
