#include "optimizer.h"

#include <math.h>

const char *const optimizer_names[OPTIMIZER_KINDS] = {"sgd", "adam", "adamw"};
const char *const lr_names[LR_KINDS] = {"constant", "cosine", "step"};

OptimizerSettings optimizer_defaults(OptimizerKind kind) {
    return (OptimizerSettings){.kind = kind,
                               .lr = kind == OPTIMIZER_SGD ? 0.1 : 1e-4,
                               .momentum = kind == OPTIMIZER_SGD ? 0.9 : 0,
                               .beta1 = 0.9,
                               .beta2 = 0.999,
                               .eps = 1e-8,
                               .weight_decay = 1e-5,
                               .step_factor = 0.1};
}

int optimizer_state_vectors(const OptimizerSettings *s) {
    return s->kind == OPTIMIZER_SGD ? s->momentum != 0 : 2;
}

double optimizer_lr(const OptimizerSettings *s, uint64_t step, uint64_t steps) {
    uint64_t warmup = (uint64_t)s->warmup_steps;
    if (step < warmup) return s->lr * (double)(step + 1) / (double)warmup;
    if (s->schedule == LR_STEP && s->step_every > 0)
        return s->lr * pow(s->step_factor, (double)(step / (uint64_t)s->step_every));
    if (s->schedule != LR_COSINE) return s->lr;
    if (step >= steps) return s->lr * s->final_fraction; /* also where all of it is warmup */
    double done = (double)(step - warmup) / (double)(steps - warmup);
    double wave = 0.5 * (1 + cos(3.14159265358979323846 * done));
    return s->lr * (s->final_fraction + (1 - s->final_fraction) * wave);
}

/* Tensors smaller than this are not worth waking the other threads for. */
enum { WORTH_THREADS = 1 << 15 };

static void sgd_update(real *restrict p, real *restrict v, const real *restrict g, real scale,
                       real lr, real momentum, real decay, size_t count) {
    if (!v) {
#pragma omp parallel for if (count > WORTH_THREADS)
        for (size_t i = 0; i < count; i++) p[i] -= lr * (scale * g[i] + decay * p[i]);
        return;
    }
#pragma omp parallel for if (count > WORTH_THREADS)
    for (size_t i = 0; i < count; i++) {
        v[i] = momentum * v[i] + (scale * g[i] + decay * p[i]);
        p[i] -= lr * v[i];
    }
}

#ifdef BCD_DOUBLE
#define real_sqrt sqrt
#else
#define real_sqrt sqrtf
#endif

static void adam_update(real *restrict p, real *restrict m, real *restrict v,
                        const real *restrict g, real scale, OptimizerFactors f, size_t count) {
#pragma omp parallel for if (count > WORTH_THREADS)
    for (size_t i = 0; i < count; i++) {
        real gi = scale * g[i] + f.coupled * p[i];
        m[i] = f.beta1 * m[i] + f.rest1 * gi;
        v[i] = f.beta2 * v[i] + f.rest2 * gi * gi;
        p[i] = f.shrink * p[i] - f.rate * m[i] / (real_sqrt(v[i]) * f.root + f.eps);
    }
}

OptimizerFactors optimizer_factors(const OptimizerSettings *s, double lr, uint64_t age,
                                   bool decay) {
    double wd = decay ? s->weight_decay : 0;
    if (s->kind == OPTIMIZER_SGD)
        return (OptimizerFactors){
            .lr = (real)lr, .momentum = (real)s->momentum, .coupled = (real)wd};
    bool decoupled = s->kind == OPTIMIZER_ADAMW;
    double t = (double)age;
    return (OptimizerFactors){.lr = (real)lr,
                              .coupled = (real)(decoupled ? 0 : wd),
                              .shrink = (real)(decoupled ? 1 - lr * wd : 1),
                              .beta1 = (real)s->beta1,
                              .rest1 = (real)(1 - s->beta1), /* not 1 - 0.999f: off by 5e-5 */
                              .beta2 = (real)s->beta2,
                              .rest2 = (real)(1 - s->beta2),
                              .rate = (real)(lr / (1 - pow(s->beta1, t))),
                              .root = (real)(1 / sqrt(1 - pow(s->beta2, t))),
                              .eps = (real)s->eps};
}

void optimizer_update(const OptimizerSettings *s, real *p, real *const state[2], const real *g,
                      double g_scale, double lr, uint64_t age, bool decay, size_t count) {
    OptimizerFactors f = optimizer_factors(s, lr, age, decay);
    if (s->kind == OPTIMIZER_SGD)
        sgd_update(p, state[0], g, (real)g_scale, f.lr, f.momentum, f.coupled, count);
    else
        adam_update(p, state[0], state[1], g, (real)g_scale, f, count);
}

double optimizer_square_sum(const real *x, size_t count) {
    enum { CHUNK = 1 << 16, LANES = 16, GROUP = 256 };
    double total = 0;
    for (size_t group = 0; group < count; group += (size_t)GROUP * CHUNK) {
        double partial[GROUP] = {0};
#pragma omp parallel for if (count > WORTH_THREADS)
        for (int k = 0; k < GROUP; k++) {
            size_t begin = group + (size_t)k * CHUNK, end = begin + CHUNK;
            if (end > count) end = count;
            double lane[LANES] = {0}; /* independent sums, which vectorise */
            for (size_t i = begin; i < end; i++) lane[i % LANES] += (double)x[i] * (double)x[i];
            for (int l = 0; l < LANES; l++) partial[k] += lane[l];
        }
        for (int k = 0; k < GROUP; k++) total += partial[k];
    }
    return total;
}
