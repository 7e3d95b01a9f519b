/* Adam (Kingma & Ba 2015, Algorithm 1) and AdamW (Loshchilov & Hutter 2019, Algorithm 2):
 *
 *     g = g + weight_decay p                              Adam: decay is part of the gradient
 *     p = p - lr weight_decay p                           AdamW: decay is a step of its own
 *     m = beta1 m + (1 - beta1) g
 *     v = beta2 v + (1 - beta2) g^2
 *     m_hat = m / bias_correction1                        bias_correction1 = 1 - beta1^t
 *     v_hat = v / bias_correction2                        bias_correction2 = 1 - beta2^t
 *     p = p - lr m_hat / (sqrt(v_hat) + eps) */
#include <math.h>

#include "optimizers.h"

#ifdef BCD_DOUBLE
#define real_sqrt sqrt
#else
#define real_sqrt sqrtf
#endif

static int two_moments(const OptimizerSettings *s) {
    (void)s;
    return 2;
}

/* Returns the factors that Adam and AdamW share, without weight decay. */
static OptimizerFactors moment_factors(const OptimizerSettings *s, double lr, uint64_t t) {
    double bias_correction1 = 1 - pow(s->beta1, (double)t);
    double bias_correction2 = 1 - pow(s->beta2, (double)t);
    return (OptimizerFactors){.lr = (real)lr,
                              .beta1 = (real)s->beta1,
                              .one_minus_beta1 = (real)(1 - s->beta1),
                              .beta2 = (real)s->beta2,
                              .one_minus_beta2 = (real)(1 - s->beta2),
                              .eps = (real)s->eps,
                              .step_size = (real)(lr / bias_correction1),
                              .rsqrt_bias_correction2 = (real)(1 / sqrt(bias_correction2))};
}

static OptimizerFactors adam_factors(const OptimizerSettings *s, double lr, double weight_decay,
                                     uint64_t t) {
    OptimizerFactors f = moment_factors(s, lr, t);
    f.coupled_decay = (real)weight_decay;
    f.decoupled_decay = 1;
    return f;
}

static OptimizerFactors adamw_factors(const OptimizerSettings *s, double lr, double weight_decay,
                                      uint64_t t) {
    OptimizerFactors f = moment_factors(s, lr, t);
    f.decoupled_decay = (real)(1 - lr * weight_decay);
    return f;
}

static void moments_update(size_t count, real *restrict p, real *restrict m, real *restrict v,
                           const real *restrict g, real g_scale, OptimizerFactors f) {
#pragma omp parallel for if (count > WORTH_THREADS)
    for (size_t i = 0; i < count; i++) {
        real gi = g_scale * g[i] + f.coupled_decay * p[i];
        m[i] = f.beta1 * m[i] + f.one_minus_beta1 * gi;
        v[i] = f.beta2 * v[i] + f.one_minus_beta2 * gi * gi;
        real sqrt_v_hat = real_sqrt(v[i]) * f.rsqrt_bias_correction2;
        p[i] = f.decoupled_decay * p[i] - f.step_size * m[i] / (sqrt_v_hat + f.eps);
    }
}

static void adam_update(const Param *param, real *p, real *const state[2], const real *g,
                        real g_scale, OptimizerFactors f) {
    moments_update(param->count, p, state[0], state[1], g, g_scale, f);
}

#define ADAM_DEFAULTS \
    { .lr = 1e-4, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 1e-5 }

const Optimizer optimizer_adam = {
    .defaults = ADAM_DEFAULTS,
    .state_vectors = two_moments,
    .factors = adam_factors,
    .update = adam_update,
};
const Optimizer optimizer_adamw = {
    .defaults = ADAM_DEFAULTS,
    .state_vectors = two_moments,
    .factors = adamw_factors,
    .update = adam_update,
};
