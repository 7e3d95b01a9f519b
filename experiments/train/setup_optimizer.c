/* Settings of the optimizer: from the flags, or what is usual for the optimizer and the model. */
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../base/text.h"
#include "setup.h"

/* Returns one of the numbers of the settings. */
static double setting_at(const OptimizerSettings *settings, size_t offset) {
    double value;
    memcpy(&value, (const char *)settings + offset, sizeof value);
    return value;
}

/* Language models: AdamW, warm-up over a twentieth of the steps, then a cosine, gradients clipped
 * at 1; a smaller rate for fine-tuning. */
static void language_defaults(Options *o) {
    OptimizerSettings *s = &o->optimizer;
    const bool adam = s->kind == OPTIMIZER_ADAM || s->kind == OPTIMIZER_ADAMW;
    if (!options_given(o, "lr") && adam) s->lr = 3e-4;
    if (!options_given(o, "lr") && *o->init && s->kind != OPTIMIZER_SGD) s->lr = 1e-5;
    if (!options_given(o, "clip")) s->clip_norm = 1;
    if (options_given(o, "schedule")) return;
    s->schedule = LR_COSINE;
    if (!options_given(o, "warmup"))
        s->warmup_steps = o->steps / 20 < INT_MAX ? (int)(o->steps / 20) : INT_MAX;
}

void setup_resolve_optimizer(Options *o) {
    const bool tokens = data_is_tokens(o->data) == 1;
    OptimizerSettings *s = &o->optimizer;
    if (tokens && !options_given(o, "optimizer")) s->kind = OPTIMIZER_ADAMW;
    const OptimizerSettings d = optimizer_defaults(s->kind);
    if (!options_given(o, "lr")) s->lr = d.lr;
    if (!options_given(o, "momentum")) s->momentum = d.momentum;
    if (!options_given(o, "weight-decay")) s->weight_decay = d.weight_decay;
    if (!options_given(o, "beta1")) s->beta1 = d.beta1;
    if (!options_given(o, "beta2")) s->beta2 = d.beta2;
    if (!options_given(o, "eps")) s->eps = d.eps;
    s->decay_matrices_only = o->decay == 1;
    if (tokens) language_defaults(o);
}

/* An optimizer has a setting if its default is not 0. */
int setup_check_optimizer(const Options *o) {
    static const struct {
        const char *flag;
        size_t offset; /* in OptimizerSettings */
    } rows[] = {{"momentum", offsetof(OptimizerSettings, momentum)},
                {"beta1", offsetof(OptimizerSettings, beta1)},
                {"beta2", offsetof(OptimizerSettings, beta2)},
                {"eps", offsetof(OptimizerSettings, eps)}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        Text having = {""};
        bool own = false;
        for (int kind = 0; kind < OPTIMIZER_KINDS; kind++) {
            const OptimizerSettings defaults = optimizer_defaults((OptimizerKind)kind);
            if (setting_at(&defaults, rows[r].offset) == 0) continue;
            text_add(&having, "%s%s", *having.text ? ", " : "", optimizer_names[kind]);
            own |= o->optimizer.kind == (OptimizerKind)kind;
        }
        if (!own && options_given(o, rows[r].flag) && setting_at(&o->optimizer, rows[r].offset) > 0)
            return error_set("--%s: %s has none; it is for %s", rows[r].flag,
                             optimizer_names[o->optimizer.kind], having.text);
    }
    return 0;
}

OptimizerSettings setup_optimizer(const Options *asked) {
    Options resolved = *asked;
    setup_resolve_optimizer(&resolved);
    return resolved.optimizer;
}
