#include "optimizer.h"

#include <assert.h>
#include <math.h>

#include "../base/error.h"
#include "optimizers.h"

/* ---- the table ---- */

/* A row has the kind, the name, and what NAME.c says of the optimizer. */
#define OPTIMIZERS(ROW)                             \
    ROW(OPTIMIZER_SGD, "sgd", &optimizer_sgd)       \
    ROW(OPTIMIZER_ADAM, "adam", &optimizer_adam)    \
    ROW(OPTIMIZER_ADAMW, "adamw", &optimizer_adamw) \
    ROW(OPTIMIZER_LION, "lion", &optimizer_lion)    \
    ROW(OPTIMIZER_MUON, "muon", &optimizer_muon)

#define NAME_OF(kind, name, row) [kind] = name,
#define ROW_OF(kind, name, row) [kind] = row,
#define ONE(kind, name, row) +1
const char *const optimizer_names[OPTIMIZER_KINDS] = {OPTIMIZERS(NAME_OF)};
static const Optimizer *const optimizers[OPTIMIZER_KINDS] = {OPTIMIZERS(ROW_OF)};
static_assert(OPTIMIZERS(ONE) == OPTIMIZER_KINDS, "a row for every optimizer");

/* Returns the row that updates a parameter. */
static const Optimizer *row_of(const OptimizerSettings *s, const Param *param) {
    const Optimizer *row = optimizers[s->kind];
    return row->others && param->kind != PARAM_MATRIX ? row->others : row;
}

int optimizer_check(const OptimizerSettings *s) {
    if ((unsigned)s->kind < OPTIMIZER_KINDS) return 0;
    return error_set("optimizer: no kind %d", (int)s->kind);
}

OptimizerSettings optimizer_defaults(OptimizerKind kind) {
    OptimizerSettings settings = optimizers[kind]->defaults;
    settings.kind = kind;
    settings.step_factor = 0.1;
    return settings;
}

OptimizerSettings optimizer_defaults_for(OptimizerKind kind, OptimizerUse use) {
    OptimizerSettings settings = optimizer_defaults(kind);
    if (optimizers[kind]->lr[use] > 0) settings.lr = optimizers[kind]->lr[use];
    return settings;
}

int optimizer_state_vectors(const OptimizerSettings *s, const Param *param) {
    const Optimizer *row = row_of(s, param);
    return row == &optimizer_sgd && s->momentum == 0 ? 0 : row->state_vectors;
}

size_t optimizer_workspace(const OptimizerSettings *s, const Param *param) {
    const Optimizer *row = row_of(s, param);
    return row->workspace ? row->workspace(param) : 0;
}

double optimizer_flops(const OptimizerSettings *s, const Param *param) {
    const Optimizer *row = row_of(s, param);
    return row->flops ? row->flops(param) : 0;
}

bool optimizer_decays(const OptimizerSettings *s, const Param *param) {
    return param->kind != PARAM_VECTOR || !s->decay_matrices_only;
}

OptimizerFactors optimizer_factors(const OptimizerSettings *s, double lr, uint64_t t, bool decay) {
    double weight_decay = decay ? s->weight_decay : 0;
    double bias_correction1 = 1 - pow(s->beta1, (double)t);
    double bias_correction2 = 1 - pow(s->beta2, (double)t);
    bool decoupled = optimizers[s->kind]->decoupled_decay;
    return (OptimizerFactors){.lr = (real)lr,
                              .momentum = (real)s->momentum,
                              .one_minus_momentum = (real)(1 - s->momentum),
                              .beta1 = (real)s->beta1,
                              .one_minus_beta1 = (real)(1 - s->beta1),
                              .beta2 = (real)s->beta2,
                              .one_minus_beta2 = (real)(1 - s->beta2),
                              .eps = (real)s->eps,
                              .coupled_decay = (real)(decoupled ? 0 : weight_decay),
                              .decay_step = (real)(decoupled ? lr * weight_decay : 0),
                              .step_size = (real)(lr / bias_correction1),
                              .rsqrt_bias_correction2 = (real)(1 / sqrt(bias_correction2))};
}

void optimizer_update(const OptimizerSettings *s, const Param *param, real *p,
                      real *const state[STATE_VECTORS], const real *g, double g_scale, double lr,
                      uint64_t t, real *workspace) {
    OptimizerFactors f = optimizer_factors(s, lr, t, optimizer_decays(s, param));
    row_of(s, param)->update(param, p, state, g, (real)g_scale, f, workspace);
}

/* ---- schedules and clipping ---- */

const char *const lr_names[] = {
    [LR_CONSTANT] = "constant", [LR_COSINE] = "cosine", [LR_STEP] = "step"};
static_assert(sizeof lr_names / sizeof *lr_names == LR_KINDS, "a name for every schedule");

/* Half a wave (Loshchilov and Hutter 2017, equation 5) from lr at the end of the warm-up down to
 * its final fraction. */
static double cosine_lr(const OptimizerSettings *s, uint64_t step, uint64_t steps) {
    const uint64_t warmup = (uint64_t)s->warmup_steps;
    if (step >= steps) return s->lr * s->final_fraction; /* also if warmup takes all steps */
    const double done = (double)(step - warmup) / (double)(steps - warmup);
    const double wave = 0.5 * (1 + cos(3.14159265358979323846 * done));
    return s->lr * (s->final_fraction + (1 - s->final_fraction) * wave);
}

double optimizer_lr(const OptimizerSettings *s, uint64_t step, uint64_t steps) {
    const uint64_t warmup = (uint64_t)s->warmup_steps;
    if (step < warmup) return s->lr * (double)(step + 1) / (double)warmup;
    switch (s->schedule) {
        case LR_COSINE:
            return cosine_lr(s, step, steps);
        case LR_STEP:
            if (s->step_every <= 0) return s->lr;
            return s->lr * pow(s->step_factor, (double)(step / (uint64_t)s->step_every));
        case LR_CONSTANT:
        case LR_KINDS:
            break;
    }
    return s->lr;
}

int optimizer_check_loss(double loss) {
    if (isfinite(loss)) return 0;
    return error_diverged("the loss is %g; lower the learning rate, or clip the gradient",
                          fabs(loss));
}

int optimizer_check_norm(double norm) {
    if (isfinite(norm)) return 0;
    return error_diverged("the gradient's norm is %g; lower the learning rate", fabs(norm));
}

double optimizer_clip(const OptimizerSettings *s, double norm) {
    return s->clip_norm > 0 && norm > s->clip_norm ? s->clip_norm / norm : 1;
}
