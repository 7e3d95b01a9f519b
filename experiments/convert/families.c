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
    {"attention.out", {"self_attn.o_proj"}},
    {"norm2", {"post_attention_layernorm"}},
    {"mlp.gate_up", {"mlp.gate_proj", "mlp.up_proj"}},
    {"mlp.down", {"mlp.down_proj"}},
    {"embedding.token", {"model.embed_tokens"}},
    {"head.norm", {"model.norm"}},
    {"head", {"lm_head"}},
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
     .transposed = true},
    {.model_type = "llama",
     .architecture = "LlamaForCausalLM",
     .family = "llama",
     .module = llama_modules,
     LIKE_LLAMA},
    {.model_type = "mistral",
     .architecture = "MistralForCausalLM",
     .family = "llama",
     .module = llama_modules,
     .groups = 8,
     LIKE_LLAMA},
    {.model_type = NULL},
};

const HfFamily *hf_family_of(const Model *model) {
    const HfFamily *row = hf_families;
    while (row->model_type && strcmp(row->family, model->family)) row++;
    return row->model_type ? row : NULL;
}

bool convert_knows(const Model *model) { return hf_family_of(model); }
