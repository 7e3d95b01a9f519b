/* Settings of the optimizer: from the flags, or what is usual for the optimizer and the model. */
#include "setup.h"

#include <limits.h>

/* Language models: AdamW, warm-up over a twentieth of the steps, then a cosine, gradients clipped
 * at 1; a smaller rate for fine-tuning. */
static void language_defaults(Options *o) {
    const bool adam = o->optimizer == OPTIMIZER_ADAM || o->optimizer == OPTIMIZER_ADAMW;
    if (!options_given(o, "lr") && adam) o->lr = 3e-4;
    if (!options_given(o, "lr") && *o->init && o->optimizer != OPTIMIZER_SGD) o->lr = 1e-5;
    if (!options_given(o, "clip")) o->clip = 1;
    if (options_given(o, "schedule")) return;
    o->schedule = LR_COSINE;
    if (!options_given(o, "warmup"))
        o->warmup = o->steps / 20 < INT_MAX ? (int)(o->steps / 20) : INT_MAX;
}

void setup_resolve_optimizer(Options *o) {
    const bool tokens = data_is_tokens(o->data) == 1;
    if (tokens && !options_given(o, "optimizer")) o->optimizer = OPTIMIZER_ADAMW;
    const OptimizerSettings d = optimizer_defaults((OptimizerKind)o->optimizer);
    if (!options_given(o, "lr")) o->lr = d.lr;
    if (!options_given(o, "momentum")) o->momentum = d.momentum;
    if (!options_given(o, "weight-decay")) o->weight_decay = d.weight_decay;
    if (!options_given(o, "beta1")) o->beta1 = d.beta1;
    if (!options_given(o, "beta2")) o->beta2 = d.beta2;
    if (!options_given(o, "eps")) o->eps = d.eps;
    if (tokens) language_defaults(o);
}

int setup_pin(Options *o) {
    return options_set_all(o, "lr=%.17g schedule=constant warmup=0 clip=0 always-active=none",
                           optimizer_defaults((OptimizerKind)o->optimizer).lr);
}

OptimizerSettings setup_optimizer(const Options *asked) {
    Options resolved = *asked, *o = &resolved;
    setup_resolve_optimizer(o);
    OptimizerSettings settings = optimizer_defaults((OptimizerKind)o->optimizer);
    settings.lr = o->lr;
    settings.momentum = o->momentum;
    settings.weight_decay = o->weight_decay;
    settings.beta1 = o->beta1;
    settings.beta2 = o->beta2;
    settings.eps = o->eps;
    settings.decay_matrices_only = o->decay == 1;
    settings.clip_norm = o->clip;
    settings.schedule = (LrKind)o->schedule;
    settings.warmup_steps = o->warmup;
    settings.final_fraction = o->final_lr;
    settings.step_every = o->step_every;
    settings.step_factor = o->step_factor;
    return settings;
}
