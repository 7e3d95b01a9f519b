/* Optimizers and learning-rate schedules: what one update does to one tensor. */
#ifndef REF_OPTIMIZER_H
#define REF_OPTIMIZER_H

#include "real.h"

typedef enum { OPTIMIZER_SGD, OPTIMIZER_ADAM, OPTIMIZER_ADAMW, OPTIMIZER_KINDS } OptimizerKind;
extern const char *const optimizer_names[OPTIMIZER_KINDS];

typedef enum { LR_CONSTANT, LR_COSINE, LR_STEP, LR_KINDS } LrKind;
extern const char *const lr_names[LR_KINDS];

typedef struct {
    OptimizerKind kind;
    double lr;
    double momentum;          /* SGD; 0 keeps no state */
    double beta1, beta2, eps; /* Adam, AdamW */
    double weight_decay;
    bool decay_matrices_only; /* false: every parameter decays, as the paper's setting implies */
    double clip_norm;         /* global norm of the active gradients; 0: no clipping */
    LrKind schedule;
    int warmup_steps;      /* linear from 0 to lr, before any schedule */
    double final_fraction; /* cosine: rate at the end, as a fraction of lr */
    int step_every;        /* step: multiply by step_factor every so many steps */
    double step_factor;
} OptimizerSettings;

/* The defaults of the paper: SGD 0.1 / 0.9 / 1e-5; Adam and AdamW 1e-4, 0.9, 0.999, 1e-8, 1e-5. */
OptimizerSettings optimizer_defaults(OptimizerKind kind);

/* Vectors of state per parameter: 0 or 1 for SGD, 2 for Adam. */
int optimizer_state_vectors(const OptimizerSettings *settings);

/* The rate of training step `step` (0-based) of `steps` in all. */
double optimizer_lr(const OptimizerSettings *settings, uint64_t step, uint64_t steps);

/* Everything in an update that does not depend on the element, worked out once in double:
 *   SGD    v = momentum v + (g + coupled p);  p -= lr v
 *   Adam   g += coupled p;  m = beta1 m + rest1 g;  v = beta2 v + rest2 g g;
 *          p = shrink p - rate m / (sqrt(v) root + eps)
 * which is lr mhat / (sqrt(vhat) + eps) with mhat = m / (1 - beta1^t), vhat = v / (1 - beta2^t). */
typedef struct {
    real lr, momentum, coupled, shrink, beta1, rest1, beta2, rest2, rate, root, eps;
} OptimizerFactors;
OptimizerFactors optimizer_factors(const OptimizerSettings *settings, double lr, uint64_t age,
                                   bool decay);

/* One fused pass over one tensor: updates p[count] and state[0], state[1] (NULL where there is
 * none) from gradient g, which is first multiplied by g_scale (clipping).  age is the number of
 * updates this state has seen, this one included (>= 1): Adam's t.  decay false: no weight decay
 * for this tensor.
 *   SGD    g += wd p;  v = momentum v + g;  p -= lr v                        (PyTorch's form)
 *   Adam   g += wd p;  m, v moments of g;   p -= lr mhat / (sqrt(vhat) + eps)  Kingma & Ba 2015
 *   AdamW  p -= lr wd p, then Adam without wd in g           Loshchilov & Hutter 2019 */
void optimizer_update(const OptimizerSettings *settings, real *p, real *const state[2],
                      const real *g, double g_scale, double lr, uint64_t age, bool decay,
                      size_t count);

/* Sum of squares of x[count], in double, in an order that depends on count alone. */
double optimizer_square_sum(const real *x, size_t count);

#endif
