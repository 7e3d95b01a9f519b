/* Settings of the optimizer: from the flags, or what is usual for the optimizer and the model. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../base/text.h"
#include "setup.h"

/* Returns AdamW's rate of fine-tuning over that of a full update.  The smaller the part that
 * trains, the higher was the best rate of SmolLM2 of 135 million parameters: 5e-5 for BCD-1/3, 2e-4
 * for BCD-1/6, and for 1/30 8e-4, or 2e-4 where embedding and head always train (smollm-rates.h5).
 */
static double rate_for_parts(const Options *o) {
    if (o->optimizer.kind != OPTIMIZER_ADAMW || o->submodels < 6) return 1;
    return o->submodels < 30 || *o->always_active ? 4 : 16;
}

/* Language models: AdamW, warm-up over a twentieth of the steps, then a cosine, gradients clipped
 * at 1; a smaller rate for fine-tuning. */
static void language_defaults(Options *o) {
    OptimizerSettings *s = &o->optimizer;
    const OptimizerUse use = *o->init ? USE_TUNING : USE_LANGUAGE;
    if (!options_given(o, "lr")) {
        s->lr = optimizer_defaults_for(s->kind, use).lr;
        if (use == USE_TUNING) s->lr *= rate_for_parts(o);
    }
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
    for (const Option *option = option_table; option->name; option++) {
        const double value = option_of_optimizer(option, &d);
        if (!isnan(value) && !options_given(o, option->name))
            memcpy((char *)o + option->offset, &value, sizeof value);
    }
    s->decay_matrices_only = o->decay == 1;
    if (tokens) language_defaults(o);
}

/* An optimizer has a setting if its default is not 0. */
int setup_check_optimizer(const Options *o) {
    const double least = 1e-30; /* as a float it is not 0 */
    static const char *const flags[] = {"momentum", "beta1", "beta2", "eps"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        if (!options_given(o, flags[i])) continue;
        const Option *option = &option_table[options_find(flags[i], o->command)];
        Text having = {""};
        bool own = false;
        for (int kind = 0; kind < OPTIMIZER_KINDS; kind++) {
            const OptimizerSettings defaults = optimizer_defaults((OptimizerKind)kind);
            if (option_of_optimizer(option, &defaults) == 0) continue;
            text_add(&having, "%s%s", *having.text ? ", " : "", optimizer_names[kind]);
            own |= o->optimizer.kind == (OptimizerKind)kind;
        }
        if (!own && option_of_optimizer(option, &o->optimizer) > 0)
            return error_set("--%s: %s has none; it is for %s", flags[i],
                             optimizer_names[o->optimizer.kind], having.text);
    }
    if (options_given(o, "eps") && o->optimizer.eps < least &&
        optimizer_defaults(o->optimizer.kind).eps > 0)
        return error_set(
            "--eps %g: where a gradient was always 0 the update would be 0 / 0; give %g or more",
            o->optimizer.eps, least);
    return 0;
}

OptimizerSettings setup_optimizer(const Options *asked) {
    Options resolved = *asked;
    setup_resolve_optimizer(&resolved);
    return resolved.optimizer;
}
