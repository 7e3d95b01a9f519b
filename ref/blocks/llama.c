/* LLaMA (Touvron et al. 2023): as GPT, with RMS norms, rotary positions inside the attention, a
 * SwiGLU feed-forward, no biases, and a head of its own; later ones with grouped queries, scaled
 * positions, or a tied head. */
#include <math.h>

#include "builder.h"

static int llama_block(Builder *b, int x, TransformerSizes s) {
    const double deviation = 0.02, residual = deviation / sqrt(2.0 * s.layers);
    const int packed = (s.attention.heads + 2 * s.attention.groups) * s.attention.d;
    int h = build_rmsnorm(b, "norm1", x, s.eps);
    h = build_linear(b, "attention.qkv", h, packed, false, deviation);
    h = build_attention(b, h, s.attention);
    h = build_linear(b, "attention.out", h, s.width, false, residual);
    x = build_add(b, h, x);
    h = build_rmsnorm(b, "norm2", x, s.eps);
    h = build_linear(b, "mlp.gate_up", h, 2 * s.ffn, false, deviation);
    h = build_swiglu(b, h);
    h = build_linear(b, "mlp.down", h, s.width, false, residual);
    return build_add(b, h, x);
}

void build_llama(Builder *b, TransformerSizes s) {
    int x = build_input(b, (Shape){1, s.context, 1}, true);
    build_block(b, "embedding");
    int token = b->model->params; /* the first parameter of the block */
    x = build_embedding(b, x, s.vocabulary, s.width, 0);
    for (int i = 0; i < s.layers; i++) {
        build_block(b, "block%d", i + 1);
        x = llama_block(b, x, s);
    }
    build_block(b, "head");
    x = build_rmsnorm(b, "norm", x, s.eps);
    if (s.tied)
        build_linear_tied(b, x, token);
    else
        build_linear(b, "", x, s.vocabulary, false, 0.02);
}
