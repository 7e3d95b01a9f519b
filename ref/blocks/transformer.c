#include "transformer.h"

#include "../error.h"

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

void transformer_blocks(Builder *b, TransformerSizes s, bool positions, TransformerBlock *block,
                        TransformerNorm *norm) {
    int x = build_input(b, (Shape){1, s.context, 1}, true);
    build_block(b, "embedding");
    int token = b->model->params; /* the first parameter of the block */
    x = build_embedding(b, x, s.vocabulary, s.width, positions ? s.context : 0);
    for (int i = 0; i < s.layers; i++) {
        build_block(b, "block%d", i + 1);
        x = block(b, x, s);
    }
    build_block(b, "head");
    x = norm(b, "norm", x, s.eps);
    if (s.tied)
        build_linear_tied(b, x, token);
    else
        build_linear(b, "", x, s.vocabulary, false, 0.02);
}
