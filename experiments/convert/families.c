#include "families.h"

#include <string.h>

static const Module gpt_modules[] = {
    {"norm1", {"ln_1"}},
    {"attention.qkv", {"attn.c_attn"}},
    {"attention.out", {"attn.c_proj"}},
    {"norm2", {"ln_2"}},
    {"mlp.up", {"mlp.c_fc"}},
    {"mlp.down", {"mlp.c_proj"}},
    {"embedding.token", {"transformer.wte"}},
    {"embedding.position", {"transformer.wpe"}},
    {"head.norm", {"transformer.ln_f"}},
    {NULL, {NULL}},
};
static const Module llama_modules[] = {
    {"norm1", {"input_layernorm"}},
    {"attention.qkv", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
    {"attention.q_norm", {"self_attn.q_norm"}},
    {"attention.k_norm", {"self_attn.k_norm"}},
    {"attention.out", {"self_attn.o_proj"}},
    {"norm2", {"post_attention_layernorm"}},
    {"mlp.gate_up", {"mlp.gate_proj", "mlp.up_proj"}},
    {"mlp.down", {"mlp.down_proj"}},
    {"embedding.token", {"model.embed_tokens"}},
    {"head.norm", {"model.norm"}},
    {"head", {"lm_head"}},
    {NULL, {NULL}},
};
static const Module olmo2_norms[] = {
    {"norm1", {"post_attention_layernorm"}},
    {"norm2", {"post_feedforward_layernorm"}},
    {NULL, {NULL}},
};

/* What the relatives of LLaMA share. */
#define LIKE_LLAMA .read = llama_read, .write = llama_write, .layers = "model.layers"

const HfFamily hf_families[] = {
    {.model_type = "gpt2",
     .architecture = "GPT2LMHeadModel",
     .family = "gpt",
     .read = gpt_read,
     .write = gpt_write,
     .layers = "transformer.h",
     .module = gpt_modules,
     .transposed = true,
     .eps = 1e-5},
    {.model_type = "llama",
     .architecture = "LlamaForCausalLM",
     .family = "llama",
     LIKE_LLAMA,
     .read_more = llama_more,
     .write_more = bias_write,
     .module = llama_modules,
     .divided = true,
     .eps = 1e-6,
     .rope_theta = 1e4},
    {.model_type = "mistral",
     .architecture = "MistralForCausalLM",
     .family = "mistral",
     LIKE_LLAMA,
     .read_more = mistral_more,
     .write_more = mistral_write,
     .module = llama_modules,
     .eps = 1e-6,
     .rope_theta = 1e4,
     .groups = 8},
    {.model_type = "qwen2",
     .architecture = "Qwen2ForCausalLM",
     .family = "qwen2",
     LIKE_LLAMA,
     .read_more = qwen2_more,
     .module = llama_modules,
     .eps = 1e-6,
     .rope_theta = 1e4,
     .groups = 32},
    {.model_type = "qwen3",
     .architecture = "Qwen3ForCausalLM",
     .family = "qwen3",
     LIKE_LLAMA,
     .read_more = qwen3_more,
     .write_more = bias_write,
     .module = llama_modules,
     .eps = 1e-6,
     .rope_theta = 1e4,
     .groups = 32,
     .head_dim = 128},
    {.model_type = "smollm3",
     .architecture = "SmolLM3ForCausalLM",
     .family = "smollm3",
     LIKE_LLAMA,
     .read_more = smollm3_more,
     .write_more = smollm3_write,
     .module = llama_modules,
     .eps = 1e-6,
     .rope_theta = 2e6,
     .tied = true,
     .groups = 4},
    {.model_type = "olmo2",
     .architecture = "Olmo2ForCausalLM",
     .family = "olmo2",
     LIKE_LLAMA,
     .read_more = llama_more,
     .write_more = bias_write,
     .module = llama_modules,
     .renamed = olmo2_norms,
     .eps = 1e-5,
     .rope_theta = 1e4},
    {.model_type = NULL},
};

const HfFamily *hf_family_of(const Model *model) {
    const HfFamily *row = hf_families;
    while (row->model_type && strcmp(row->family, model->family)) row++;
    return row->model_type ? row : NULL;
}

bool convert_knows(const Model *model) { return hf_family_of(model); }
