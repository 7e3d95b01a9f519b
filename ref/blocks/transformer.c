#include "transformer.h"

#include "../base/error.h"

TransformerSizes transformer_sizes(const Settings *settings) {
    return (TransformerSizes){.layers = setting_int(settings, "layers"),
                              .width = setting_int(settings, "width"),
                              .context = setting_int(settings, "context"),
                              .vocabulary = setting_int(settings, "vocabulary"),
                              .eps = setting(settings, "eps")};
}

int transformer_check(const TransformerSizes *s) {
    const Attention *a = &s->attention;
    const Rope *r = &a->rope;
    const int given = (r->low > 0) + (r->high > 0) + (r->original > 0);
    if (a->heads % a->groups)
        return error_set("model: %d heads are not a multiple of %d groups", a->heads, a->groups);
    if (r->base > 0 && a->d % 2)
        return error_set("model: rotary positions need an even head size, not %d", a->d);
    if (given % 3 || (given && !(r->factor > 1)))
        return error_set(
            "model: rope_low, rope_high and rope_original go together, with a rope_factor above 1");
    if (given && !(r->low < r->high))
        return error_set("model: rope_low=%g is not below rope_high=%g", r->low, r->high);
    return 0;
}

int transformer_blocks(Model *m, TransformerSizes s, bool positions, TransformerBlock *block,
                       TransformerNorm *norm) {
    if (build_tables(m, s.layers + 2, (Shape){1, s.context, 1}, true)) return -1;
    m->transformer = s;
    build_block(m, "embedding");
    int x = build_embedding(m, 0, s.vocabulary, s.width, positions ? s.context : 0);
    for (int i = 0; i < s.layers; i++) {
        build_block(m, "block%d", i + 1);
        x = block(m, x, s, i);
    }
    build_block(m, "head");
    x = norm(m, "norm", x, s.eps);
    if (s.tied)
        build_linear_tied(m, x, m->node[0].weight);
    else
        build_linear(m, "", x, s.vocabulary, false, 0.02);
    return 0;
}
