/* GPT-2 (Radford et al. 2019): an embedding, L blocks of attention and feed-forward, and a head
 * whose weight is the token embedding.  Attention and feed-forward are residual branches that start
 * with a layer norm, and the head starts with one too. */
#include <math.h>

#include "../base/error.h"
#include "transformer.h"

static int gpt_block(Model *m, int x, TransformerSizes s, int layer) {
    (void)layer;
    /* GPT-2 scales down the 2 L weights that write to the residual stream. */
    const double deviation = 0.02, residual = deviation / sqrt(2.0 * s.layers);
    int h = build_layernorm(m, "norm1", x, s.eps);
    const int qkv[] = {s.width, s.width, s.width};
    h = build_linear_packed(m, "attention.qkv", h, 3, qkv, true, deviation);
    h = build_attention(m, h, s.attention);
    h = build_linear(m, "attention.out", h, s.width, true, residual);
    x = build_add(m, h, x);
    h = build_layernorm(m, "norm2", x, s.eps);
    h = build_linear(m, "mlp.up", h, s.ffn, true, deviation);
    h = build_gelu(m, h);
    h = build_linear(m, "mlp.down", h, s.width, true, residual);
    return build_add(m, h, x);
}

static int gpt_build(Model *m, const Settings *settings) {
    const int width = setting_int(settings, "width"), heads = setting_int(settings, "heads");
    TransformerSizes s = transformer_sizes(settings);
    if (width % heads)
        return error_set("model: width %d is not a multiple of %d heads", width, heads);
    s.ffn = 4 * width;
    s.attention = (Attention){.heads = heads, .groups = heads, .d = width / heads, .causal = true};
    s.tied = true;
    if (transformer_check(&s)) return -1;
    return transformer_blocks(m, s, true, gpt_block, build_layernorm);
}

const Family family_gpt = {
    .name = "gpt",
    .key = {REQUIRED("layers", 1, 4096), REQUIRED("width", 1, 65536), REQUIRED("heads", 1, 1024),
            REQUIRED("context", 1, 1 << 20), DEFAULT("vocabulary", 50257, 2, 1 << 24), NORM_EPS},
    .build = gpt_build,
};
