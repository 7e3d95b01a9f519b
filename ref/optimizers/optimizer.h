/* Optimizers, learning-rate schedules and clipping.  The update rules themselves are in
 * NAME.c, each under its equation. */
#pragma once

#include "../base/param.h"
#include "../base/real.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    OPTIMIZER_SGD,
    OPTIMIZER_ADAM,
    OPTIMIZER_ADAMW,
    OPTIMIZER_LION,
    OPTIMIZER_MUON,
    OPTIMIZER_KINDS
} OptimizerKind;
extern const char *const optimizer_names[OPTIMIZER_KINDS];

/* How the rate goes.  To add one: its kind here, its name and its case in optimizer.c, rows in
 * tests/ref/test_optimizer.c; a flag of its own, as "final-lr", is a field below, a row of
 * experiments/cli/options_table.c, and in check_read of experiments/train/setup.c. */
typedef enum { LR_CONSTANT, LR_COSINE, LR_STEP, LR_KINDS } LrKind;
extern const char *const lr_names[LR_KINDS];

typedef struct {
    OptimizerKind kind;
    double lr;
    double momentum;          /* 0 where the optimizer has none; without it SGD needs no state */
    double beta1, beta2, eps; /* likewise */
    double weight_decay;
    bool decay_matrices_only; /* embeddings included; false: every parameter decays, as the paper's
                                 setting implies */
    double clip_norm; /* the largest norm of all active gradients together; 0: no clipping */
    LrKind schedule;
    int warmup_steps;      /* in the first steps of the training the rate is lr/warmup, 2 lr/warmup,
                            * ...; with BCD they are of the first phases (bcd.h: switch_warmup) */
    double final_fraction; /* LR_COSINE: the rate at the end, as a fraction of lr */
    int step_every;        /* LR_STEP: multiply by step_factor every step_every steps, which count
                            * from the start, warm-up included */
    double step_factor;
} OptimizerSettings;

/* Returns -1 and an error if settings->kind is none of the above. */
int optimizer_check(const OptimizerSettings *settings);

/* Returns the settings of the row in NAME.c: those of the BCD paper where it trains with this
 * optimizer, else those of the optimizer's authors or of PyTorch.  Muon's rate is ours, and AdamW
 * has the paper's settings of Adam, so its decay is 1e-5, not PyTorch's 1e-2. */
OptimizerSettings optimizer_defaults(OptimizerKind kind);

/* What is trained: the rate that is usual for it differs. */
typedef enum { USE_GENERAL, USE_LANGUAGE, USE_TUNING, OPTIMIZER_USES } OptimizerUse;
/* Returns the same settings with the rate for a language model, or for its fine-tuning. */
OptimizerSettings optimizer_defaults_for(OptimizerKind kind, OptimizerUse use);

enum { STATE_VECTORS = 2 }; /* at most: the roles of tensors (stage.h) have names for two */
/* Returns the vectors of state of a parameter, each as long as the parameter, as the row says; 0
 * for SGD without momentum. */
int optimizer_state_vectors(const OptimizerSettings *settings, const Param *param);

/* Return the numbers of workspace that the update of a parameter needs, and the floating-point
 * operations of its products, two for a multiply-add, as the row says. */
size_t optimizer_workspace(const OptimizerSettings *settings, const Param *param);
double optimizer_flops(const OptimizerSettings *settings, const Param *param);

/* Returns the learning rate of training step `step`, which counts from 0, of `steps` in all. */
double optimizer_lr(const OptimizerSettings *settings, uint64_t step, uint64_t steps);

/* Returns true if weight decay applies to this parameter. */
bool optimizer_decays(const OptimizerSettings *settings, const Param *param);

/* Everything in an update that is the same for all elements.  It is computed once, in double,
 * because 1 - 0.999f has a relative error of 1.3e-5.  Each optimizer reads what its equation names.
 */
typedef struct {
    real lr, momentum, one_minus_momentum, beta1, one_minus_beta1, beta2, one_minus_beta2, eps;
    real coupled_decay;          /* weight_decay, added to the gradient as coupled_decay p, or 0 */
    real decay_step;             /* lr weight_decay: p moves by decay_step p; or 0 */
    real step_size;              /* lr / bias_correction1 */
    real rsqrt_bias_correction2; /* 1 / sqrt(bias_correction2) */
} OptimizerFactors;
OptimizerFactors optimizer_factors(const OptimizerSettings *settings, double lr, uint64_t t,
                                   bool decay);

/* What the devices share of Muon (muon.c): the steps of Newton-Schulz, x = (a + b x x' + c (x
 * x')^2) x; the least norm that x is divided by; and the rate of an update by x. */
enum { MUON_STEPS = 5 };
typedef struct {
    real a, b, c;
    double min_norm;
} MuonNumbers;
MuonNumbers muon_numbers(void);
double muon_rate(double lr, int rows, int columns);

/* Updates one tensor: overwrites p[param->count] and the state vectors, which have the same length
 * (NULL where the optimizer has none), from the gradient g, multiplied by g_scale (clipping).
 * workspace[optimizer_workspace(...)] is overwritten; NULL if that is 0.  The arrays must not
 * alias.  t >= 1 is the number of updates of this state, this one included. */
void optimizer_update(const OptimizerSettings *settings, const Param *param, real *p,
                      real *const state[STATE_VECTORS], const real *g, double g_scale, double lr,
                      uint64_t t, real *workspace);

/* Return -1 and an error if the loss of a step, or the norm of its gradient, is not finite. */
int optimizer_check_loss(double loss);
int optimizer_check_norm(double norm);

/* Returns the factor by which clipping multiplies a gradient of this norm: 1 if it is small
 * enough. */
double optimizer_clip(const OptimizerSettings *settings, double norm);

/* Returns the sum of squares of x[count], in double, in an order that depends only on count. */
double optimizer_square_sum(const real *x, size_t count);

#ifdef __cplusplus
}
#endif
