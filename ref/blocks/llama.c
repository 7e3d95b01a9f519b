/* LLaMA (Touvron et al. 2023): like GPT, but with RMS norms, rotary positions inside the attention,
 * a SwiGLU feed-forward, no biases, and a head that is not tied.  Later versions have grouped
 * queries, scaled positions or a tied head. */
#include <math.h>

#include "../base/error.h"
#include "transformer.h"

static int llama_block(Model *m, int x, TransformerSizes s) {
    const double deviation = 0.02, residual = deviation / sqrt(2.0 * s.layers);
    const int packed = (s.attention.heads + 2 * s.attention.groups) * s.attention.d;
    int h = build_rmsnorm(m, "norm1", x, s.eps);
    h = build_linear(m, "attention.qkv", h, packed, false, deviation);
    h = build_attention(m, h, s.attention);
    h = build_linear(m, "attention.out", h, s.width, false, residual);
    x = build_add(m, h, x);
    h = build_rmsnorm(m, "norm2", x, s.eps);
    h = build_linear(m, "mlp.gate_up", h, 2 * s.ffn, false, deviation);
    h = build_swiglu(m, h);
    h = build_linear(m, "mlp.down", h, s.width, false, residual);
    return build_add(m, h, x);
}

/* The feed-forward's default is 8/3 of the width (Touvron et al. 2023), rounded up to a multiple of
 * 32. */
static void llama_derive(Settings *s) {
    const int width = setting_int(s, "width"), heads = setting_int(s, "heads");
    double *ffn = setting_pointer(s, "ffn"), *groups = setting_pointer(s, "groups"),
           *size = setting_pointer(s, "head_size");
    if (*ffn == 0) *ffn = (8 * width / 3 + 31) / 32 * 32;
    if ((int)*groups == heads) *groups = 0;
    if ((int)*size * heads == width) *size = 0;
}

static int llama_build(Model *m, const Settings *settings) {
    const int width = setting_int(settings, "width"), heads = setting_int(settings, "heads"),
              groups = setting_int(settings, "groups"), d = setting_int(settings, "head_size");
    TransformerSizes s = transformer_sizes(settings);
    s.ffn = setting_int(settings, "ffn");
    s.attention = (Attention){.heads = heads,
                              .groups = groups ? groups : heads,
                              .d = d ? d : width / heads,
                              .rope = {.base = setting(settings, "rope_base"),
                                       .factor = setting(settings, "rope_factor"),
                                       .low = setting(settings, "rope_low"),
                                       .high = setting(settings, "rope_high"),
                                       .original = setting(settings, "rope_original")},
                              .causal = true};
    s.tied = setting_int(settings, "tied") > 0;
    if (d == 0 && width % heads)
        return error_set("model: width %d is not a multiple of %d heads; give head_size", width,
                         heads);
    if (transformer_check(&s)) return -1;
    return transformer_blocks(m, s, false, llama_block, build_rmsnorm);
}

const Family family_llama = {
    .name = "llama",
    .key = {REQUIRED("layers", 1, 4096), REQUIRED("width", 2, 65536), REQUIRED("heads", 1, 1024),
            DEFAULT("ffn", 0, 1, 1 << 20), REQUIRED("context", 1, 1 << 20),
            DEFAULT("vocabulary", 32000, 2, 1 << 24), NORM_EPS, OPTIONAL("groups", 1, 1024),
            OPTIONAL("head_size", 2, 1024), OPTIONAL("tied", 0, 1),
            OPTIONAL_REAL("rope_base", 10000, 1, 1e12), OPTIONAL_REAL("rope_factor", 1, 1, 1e6),
            OPTIONAL_REAL("rope_low", 0, 1e-6, 1e6), OPTIONAL_REAL("rope_high", 0, 1e-6, 1e6),
            OPTIONAL("rope_original", 1, 1 << 24)},
    .derive = llama_derive,
    .build = llama_build,
};
