/* Optimizers and learning-rate schedules: what one update does to one tensor.  What an optimizer is
 * stands in optimizers/NAME.c, each under its equation; here is what the others need of it. */
#ifndef REF_OPTIMIZER_H
#define REF_OPTIMIZER_H

#include "model.h"

typedef enum {
    OPTIMIZER_SGD,
    OPTIMIZER_ADAM,
    OPTIMIZER_ADAMW,
    OPTIMIZER_LION,
    OPTIMIZER_KINDS
} OptimizerKind;
extern const char *const optimizer_names[OPTIMIZER_KINDS];

typedef enum { LR_CONSTANT, LR_COSINE, LR_STEP, LR_KINDS } LrKind;
extern const char *const lr_names[LR_KINDS];

typedef struct {
    OptimizerKind kind;
    double lr;
    double momentum;          /* SGD; 0 keeps no state */
    double beta1, beta2, eps; /* Adam, AdamW; Lion has no eps */
    double weight_decay;
    bool decay_matrices_only; /* false: every parameter decays, as the paper's setting implies */
    double clip_norm;         /* global norm of the active gradients; 0: no clipping */
    LrKind schedule;
    int warmup_steps;      /* linear from 0 to lr, before any schedule */
    double final_fraction; /* cosine: rate at the end, as a fraction of lr */
    int step_every;        /* step: multiply by step_factor every so many steps */
    double step_factor;
} OptimizerSettings;

/* -1 and an error that names the known ones: no optimizer is called so, or is of this kind. */
int optimizer_find(const char *name);
int optimizer_check(const OptimizerSettings *settings);

/* SGD, Adam and AdamW as in the BCD paper, Lion as in its own: see optimizers/. */
OptimizerSettings optimizer_defaults(OptimizerKind kind);

/* Vectors of state per parameter, at most two: 0 or 1 for SGD, 1 for Lion, 2 for Adam. */
int optimizer_state_vectors(const OptimizerSettings *settings);

/* The rate of training step `step` (0-based) of `steps` in all. */
double optimizer_lr(const OptimizerSettings *settings, uint64_t step, uint64_t steps);

/* Whether weight decay applies to this parameter. */
bool optimizer_decays(const OptimizerSettings *settings, const Param *param);

/* Everything in an update that does not depend on the element, worked out once in double: for it in
 * float, 1 - 0.999 would be off by 5e-5.  An optimizer fills what its equation names. */
typedef struct {
    real lr, momentum, beta1, one_minus_beta1, beta2, one_minus_beta2, eps;
    real coupled_decay;          /* weight_decay, added to the gradient as coupled_decay p */
    real decoupled_decay;        /* 1 - lr weight_decay, which multiplies p */
    real step_size;              /* lr / bias_correction1 */
    real rsqrt_bias_correction2; /* 1 / sqrt(bias_correction2) */
} OptimizerFactors;
OptimizerFactors optimizer_factors(const OptimizerSettings *settings, double lr, uint64_t t,
                                   bool decay);

/* One update of one tensor: overwrites p[param->count] and the state vectors, of as many numbers
 * (NULL where there is none), from gradient g, which is first multiplied by g_scale (clipping).
 * They do not alias.  t >= 1 counts the updates of this state, this one included. */
void optimizer_update(const OptimizerSettings *settings, const Param *param, real *p,
                      real *const state[2], const real *g, double g_scale, double lr, uint64_t t);

/* -1 and an error: the loss of a step, or the norm of its gradient, is not finite. */
int optimizer_check_loss(double loss);
int optimizer_check_norm(double norm);

/* What clipping multiplies a gradient of this norm by: 1 where it is short enough. */
double optimizer_clip(const OptimizerSettings *settings, double norm);

/* Sum of squares of x[count], in double, in an order that depends on count alone. */
double optimizer_square_sum(const real *x, size_t count);

#endif
