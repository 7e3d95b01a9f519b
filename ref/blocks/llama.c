/* LLaMA (Touvron et al. 2023) and its relatives: like GPT, but with RMS norms, rotary positions
 * inside the attention, a SwiGLU feed-forward, no biases, and a head that is not tied.  Later
 * versions have grouped queries, scaled positions or a tied head.  The relatives differ in a few
 * places:
 *
 *   mistral   attention to a window of the last positions (Jiang et al. 2023)
 *   qwen2     biases of q, k and v (Yang et al. 2024)
 *   qwen3     norms of each head's q and k (Yang et al. 2025)
 *   smollm3   every fourth layer without rotary positions (Bakouch et al. 2025)
 *   olmo2     norms after attention and feed-forward, not before; norms of q and k over all heads
 *             (Walsh et al. 2024) */
#include <math.h>
#include <string.h>

#include "../base/error.h"
#include "transformer.h"

static const double deviation = 0.02;

/* The weights that write to the residual stream start smaller, as those of GPT-2. */
static double residual_deviation(TransformerSizes s) { return deviation / sqrt(2.0 * s.layers); }

typedef enum { QKNORM_NONE, QKNORM_HEADS, QKNORM_WHOLE } QkNorm;

static int attention(Model *m, int h, TransformerSizes s, int layer, QkNorm norm) {
    Attention a = s.attention;
    const int qkv[] = {a.heads * a.d, a.groups * a.d, a.groups * a.d};
    if (s.rope_skip && (layer + 1) % s.rope_skip == 0) a.rope = (Rope){0};
    h = build_linear_packed(m, "attention.qkv", h, 3, qkv, s.bias != BIAS_NONE, deviation);
    if (norm != QKNORM_NONE) h = build_qknorm(m, h, a, norm == QKNORM_WHOLE, s.eps);
    h = build_attention(m, h, a);
    return build_linear(m, "attention.out", h, s.width, s.bias == BIAS_ALL, residual_deviation(s));
}

static int feed_forward(Model *m, int h, TransformerSizes s) {
    const int gate_up[] = {s.ffn, s.ffn};
    h = build_linear_packed(m, "mlp.gate_up", h, 2, gate_up, false, deviation);
    h = build_swiglu(m, h);
    return build_linear(m, "mlp.down", h, s.width, false, residual_deviation(s));
}

static int normed_block(Model *m, int x, TransformerSizes s, int layer, QkNorm norm) {
    int h = build_rmsnorm(m, "norm1", x, s.eps);
    x = build_add(m, attention(m, h, s, layer, norm), x);
    h = build_rmsnorm(m, "norm2", x, s.eps);
    return build_add(m, feed_forward(m, h, s), x);
}

static int llama_block(Model *m, int x, TransformerSizes s, int layer) {
    return normed_block(m, x, s, layer, QKNORM_NONE);
}

static int qwen3_block(Model *m, int x, TransformerSizes s, int layer) {
    return normed_block(m, x, s, layer, QKNORM_HEADS);
}

static int olmo2_block(Model *m, int x, TransformerSizes s, int layer) {
    const int h = attention(m, x, s, layer, QKNORM_WHOLE);
    x = build_add(m, build_rmsnorm(m, "norm1", h, s.eps), x);
    return build_add(m, build_rmsnorm(m, "norm2", feed_forward(m, x, s), s.eps), x);
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

/* An interval beyond the last layer says what 0 says. */
static void smollm3_derive(Settings *s) {
    double *skip = setting_pointer(s, "rope_skip");
    llama_derive(s);
    if (*skip > setting(s, "layers")) *skip = 0;
}

/* A setting of some of the families; 0 in the others. */
static int optional(const Settings *settings, const char *name) {
    return setting_index(settings->family, name, strlen(name)) < 0 ? 0
                                                                   : setting_int(settings, name);
}

static int build_of(Model *m, const Settings *settings, AttentionBias bias,
                    TransformerBlock *block) {
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
                              .causal = true,
                              .window = optional(settings, "window")};
    s.tied = setting_int(settings, "tied") > 0;
    s.bias = optional(settings, "attention_bias") ? BIAS_ALL : bias;
    s.rope_skip = optional(settings, "rope_skip");
    if (d == 0 && width % heads)
        return error_set("model: width %d is not a multiple of %d heads; give head_size", width,
                         heads);
    if (transformer_check(&s)) return -1;
    return transformer_blocks(m, s, false, block, build_rmsnorm);
}

static int llama_build(Model *m, const Settings *settings) {
    return build_of(m, settings, BIAS_NONE, llama_block);
}
static int qwen2_build(Model *m, const Settings *settings) {
    return build_of(m, settings, BIAS_QKV, llama_block);
}
static int qwen3_build(Model *m, const Settings *settings) {
    return build_of(m, settings, BIAS_NONE, qwen3_block);
}
static int olmo2_build(Model *m, const Settings *settings) {
    return build_of(m, settings, BIAS_NONE, olmo2_block);
}

/* The settings of all of them. */
#define LIKE_LLAMA                                                                           \
    REQUIRED("layers", 1, 4096), REQUIRED("width", 2, 65536), REQUIRED("heads", 1, 1024),    \
        DEFAULT("ffn", 0, 1, 1 << 20), REQUIRED("context", 1, 1 << 20),                      \
        DEFAULT("vocabulary", 32000, 2, 1 << 24), NORM_EPS, OPTIONAL("groups", 1, 1024),     \
        OPTIONAL("head_size", 2, 1024), OPTIONAL("tied", 0, 1),                              \
        OPTIONAL_REAL("rope_base", 10000, 1, 1e12), OPTIONAL_REAL("rope_factor", 1, 1, 1e6), \
        OPTIONAL_REAL("rope_low", 0, 1e-6, 1e6), OPTIONAL_REAL("rope_high", 0, 1e-6, 1e6),   \
        OPTIONAL("rope_original", 1, 1 << 24)
#define ATTENTION_BIAS OPTIONAL("attention_bias", 0, 1)

const Family family_llama = {.name = "llama",
                             .key = {LIKE_LLAMA, ATTENTION_BIAS},
                             .derive = llama_derive,
                             .build = llama_build};
const Family family_mistral = {.name = "mistral",
                               .key = {LIKE_LLAMA, OPTIONAL("window", 1, 1 << 24)},
                               .derive = llama_derive,
                               .build = llama_build};
const Family family_qwen2 = {
    .name = "qwen2", .key = {LIKE_LLAMA}, .derive = llama_derive, .build = qwen2_build};
const Family family_qwen3 = {.name = "qwen3",
                             .key = {LIKE_LLAMA, ATTENTION_BIAS},
                             .derive = llama_derive,
                             .build = qwen3_build};
const Family family_smollm3 = {
    .name = "smollm3",
    .key = {LIKE_LLAMA, ATTENTION_BIAS, DEFAULT("rope_skip", 4, 0, 1 << 16)},
    .derive = smollm3_derive,
    .build = llama_build};
const Family family_olmo2 = {.name = "olmo2",
                             .key = {LIKE_LLAMA, ATTENTION_BIAS},
                             .derive = llama_derive,
                             .build = olmo2_build};
