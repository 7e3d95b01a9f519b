#include "presets.h"

#include <string.h>

#include "../../ref/blocks/models.h"
#include "../test.h"

typedef struct {
    const char *name;
    double eps;
    int heads, groups, head_size;
    bool tied;
    double rope_base, rope_factor, rope_low, rope_high, rope_original;
    int rope_skip;
    AttentionBias bias;
} Settled;

#define LLAMA_3(factor) .rope_factor = factor, .rope_low = 1, .rope_high = 4, .rope_original = 8192

/* From the config.json of the published models: rms_norm_eps or layer_norm_epsilon,
 * num_attention_heads, num_key_value_heads, head_dim, tie_word_embeddings, rope_theta,
 * rope_scaling, no_rope_layer_interval.  The paper gives only the sizes of its own models, G and L,
 * so theirs are those of GPT-2 and of Llama 2.  The number of parameters shows few of them, and
 * with any of them wrong a published model computes nonsense. */
/* clang-format off */
static const Settled presets[] = {
    {"gpt2", 1e-5, 12, 12, 64, true, .rope_base = 0},
    {"gpt2-0.15B", 1e-5, 12, 12, 64, true, .rope_base = 0},
    {"G-1.6B", 1e-5, 16, 16, 128, true, .rope_base = 0},
    {"G-5.4B", 1e-5, 32, 32, 124, true, .rope_base = 0},
    {"G-10B", 1e-5, 32, 32, 124, true, .rope_base = 0},
    {"G-20B", 1e-5, 32, 32, 124, true, .rope_base = 0},
    {"L-1.5B", 1e-5, 16, 16, 128, false, .rope_base = 10000, .rope_factor = 1},
    {"L-6.0B", 1e-5, 32, 32, 128, false, .rope_base = 10000, .rope_factor = 1},
    {"L-11B", 1e-5, 32, 32, 128, false, .rope_base = 10000, .rope_factor = 1},
    {"L-23B", 1e-5, 32, 32, 128, false, .rope_base = 10000, .rope_factor = 1},
    {"L-7B", 1e-5, 32, 32, 128, false, .rope_base = 10000, .rope_factor = 1},
    {"L-70B", 1e-5, 64, 8, 128, false, .rope_base = 10000, .rope_factor = 1},
    {"L-405B", 1e-5, 128, 8, 128, false, .rope_base = 500000, LLAMA_3(8)},
    {"tinyllama", 1e-5, 32, 4, 64, false, .rope_base = 10000, .rope_factor = 1},
    {"mistral-7B", 1e-5, 32, 8, 128, false, .rope_base = 1000000, .rope_factor = 1},
    {"llama3-8B", 1e-5, 32, 8, 128, false, .rope_base = 500000, .rope_factor = 1},
    {"llama3.2-1B", 1e-5, 32, 8, 64, true, .rope_base = 500000, LLAMA_3(32)},
    {"llama3.2-3B", 1e-5, 24, 8, 128, true, .rope_base = 500000, LLAMA_3(32)},
    {"qwen2.5-0.5B", 1e-6, 14, 2, 64, true, .rope_base = 1000000, .rope_factor = 1, .bias = BIAS_QKV},
    {"qwen2.5-7B", 1e-6, 28, 4, 128, false, .rope_base = 1000000, .rope_factor = 1, .bias = BIAS_QKV},
    {"qwen3-0.6B", 1e-6, 16, 8, 128, true, .rope_base = 1000000, .rope_factor = 1},
    {"qwen3-8B", 1e-6, 32, 8, 128, false, .rope_base = 1000000, .rope_factor = 1},
    {"smollm3-3B", 1e-6, 16, 4, 128, true, .rope_base = 5000000, .rope_factor = 1, .rope_skip = 4},
    {"olmo2-7B", 1e-6, 32, 32, 128, false, .rope_base = 500000, .rope_factor = 1},
};
/* clang-format on */

static const Settled *settled_of(const char *name) {
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
        if (strcmp(presets[i].name, name) == 0) return &presets[i];
    return NULL;
}

static void check_preset(const Model *m, const Settled *row) {
    const TransformerSizes *s = &m->transformer;
    const Attention *a = &s->attention;
    CHECK(s->eps == row->eps && s->tied == row->tied && s->bias == row->bias, "%s: eps %g, %s",
          m->name, s->eps, s->tied ? "tied" : "not tied");
    CHECK(a->heads == row->heads && a->groups == row->groups && a->d == row->head_size &&
              a->causal && a->window == 0,
          "%s: %d heads and %d groups of %d, a window of %d", m->name, a->heads, a->groups, a->d,
          a->window);
    CHECK(a->rope.base == row->rope_base && a->rope.factor == row->rope_factor &&
              a->rope.low == row->rope_low && a->rope.high == row->rope_high &&
              a->rope.original == row->rope_original && s->rope_skip == row->rope_skip,
          "%s: base %g, factor %g, low %g, high %g, original %g, skip %d", m->name, a->rope.base,
          a->rope.factor, a->rope.low, a->rope.high, a->rope.original, s->rope_skip);
}

/* The nodes, which compute, have what the sizes say. */
static void check_nodes(const Model *m, const Settled *row) {
    for (int i = 0; i < m->nodes; i++) {
        const Node *node = &m->node[i];
        const bool norm =
            node->kind == OP_LAYERNORM || node->kind == OP_RMSNORM || node->kind == OP_QKNORM;
        CHECK(!norm || node->eps == row->eps, "%s: node %d has eps %g", m->name, i, node->eps);
        if (node->kind != OP_ATTENTION) continue;
        const int layer = m->value[node->out].block /* the embedding is block 0 */;
        const bool skipped = row->rope_skip && layer % row->rope_skip == 0;
        CHECK(node->attention.rope.base == (skipped ? 0 : row->rope_base) &&
                  node->attention.groups == row->groups,
              "%s: layer %d, base %g, %d groups", m->name, layer, node->attention.rope.base,
              node->attention.groups);
    }
}

void presets_are_as_published(void) {
    for (const Preset *p = model_presets; p->name; p++) {
        Model *m = model_create(p->name);
        if (!CHECK(m, "%s", error_message())) return;
        const Settled *row = settled_of(p->name);
        if (m->transformer.layers && CHECK(row, "%s has no row in presets.c", p->name)) {
            check_preset(m, row);
            check_nodes(m, row);
        }
        model_free(m);
    }
}
