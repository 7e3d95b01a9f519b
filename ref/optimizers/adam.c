/* Adam (Kingma & Ba 2015, Algorithm 1) and AdamW in PyTorch's form, in which the rate multiplies
 * the decay (in Algorithm 2 of Loshchilov & Hutter 2019 only the schedule's factor does):
 *
 *     g = g + weight_decay p                              Adam: decay is part of the gradient
 *     p = p - lr weight_decay p                           AdamW: decay is a step of its own
 *     m = beta1 m + (1 - beta1) g
 *     v = beta2 v + (1 - beta2) g^2
 *     m_hat = m / bias_correction1                        bias_correction1 = 1 - beta1^t
 *     v_hat = v / bias_correction2                        bias_correction2 = 1 - beta2^t
 *     p = p - lr m_hat / (sqrt(v_hat) + eps)
 *
 * A decay of its own joins the last step before p is rounded.  PyTorch multiplies p by
 * 1 - lr weight_decay, which is 1 in float where lr weight_decay is below 3e-8, as at the defaults:
 * then it would never act.  Here it acts where the rest of the step does.  Where that is 0, as in
 * an embedding the rows of tokens that have not come yet, it is rounded away, too. */
#include <math.h>

#include "optimizers.h"

static void adam_update(const Param *param, real *restrict p, real *const state[STATE_VECTORS],
                        const real *restrict g, real g_scale, OptimizerFactors f, real *workspace) {
    (void)workspace;
    real *restrict m = state[0], *restrict v = state[1];
#pragma omp parallel for if (param->count > WORTH_THREADS)
    for (size_t i = 0; i < param->count; i++) {
        real gi = g_scale * g[i] + f.coupled_decay * p[i];
        m[i] = f.beta1 * m[i] + f.one_minus_beta1 * gi;
        v[i] = f.beta2 * v[i] + f.one_minus_beta2 * gi * gi;
        real sqrt_v_hat = real_sqrt(v[i]) * f.rsqrt_bias_correction2;
        p[i] -= f.decay_step * p[i] + f.step_size * m[i] / (sqrt_v_hat + f.eps);
    }
}

#define ADAM                                                                                   \
    .defaults = {.lr = 1e-4, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 1e-5}, \
    .lr = {[USE_LANGUAGE] = 3e-4, [USE_TUNING] = 5e-5}, .state_vectors = 2, .update = adam_update

const Optimizer optimizer_adam = {ADAM};
const Optimizer optimizer_adamw = {ADAM, .decoupled_decay = true};
