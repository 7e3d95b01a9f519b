/* What the families write into config.json. */
#include <math.h>

#include "../../ref/base/error.h"
#include "families.h"

/* GPT-2's token that ends a text, and its vocabulary, padded as is usual. */
enum { GPT2_END_OF_TEXT = 50256, GPT2_VOCABULARY = 50304 };

/* Left out, transformers takes those of the family's first model: it would stop at token 2, or pad
 * with a token that this vocabulary may lack. */
static void no_special_tokens(cJSON *root) {
    cJSON_AddNullToObject(root, "bos_token_id");
    cJSON_AddNullToObject(root, "eos_token_id");
    cJSON_AddNullToObject(root, "pad_token_id");
}

void gpt_write(cJSON *root, const Model *model) {
    const TransformerSizes s = model->transformer;
    cJSON_AddNumberToObject(root, "n_layer", s.layers);
    cJSON_AddNumberToObject(root, "n_embd", s.width);
    cJSON_AddNumberToObject(root, "n_head", s.attention.heads);
    cJSON_AddNumberToObject(root, "n_positions", s.context);
    cJSON_AddNumberToObject(root, "n_ctx", s.context);
    cJSON_AddStringToObject(root, "activation_function", "gelu_new");
    cJSON_AddNumberToObject(root, "layer_norm_epsilon", s.eps);
    cJSON_AddTrueToObject(root, "tie_word_embeddings");
    if (s.vocabulary <= GPT2_END_OF_TEXT || s.vocabulary > GPT2_VOCABULARY) no_special_tokens(root);
}

static void add_rope(cJSON *root, const char *name, const Rope *r) {
    cJSON *to = cJSON_AddObjectToObject(root, name);
    const bool llama3 = r->original > 0, scaled = r->factor > 1;
    cJSON_AddStringToObject(to, "rope_type", llama3 ? "llama3" : scaled ? "linear" : "default");
    cJSON_AddNumberToObject(to, "rope_theta", r->base);
    if (scaled) cJSON_AddNumberToObject(to, "factor", r->factor);
    if (!llama3) return;
    cJSON_AddNumberToObject(to, "low_freq_factor", r->low);
    cJSON_AddNumberToObject(to, "high_freq_factor", r->high);
    cJSON_AddNumberToObject(to, "original_max_position_embeddings", r->original);
}

void llama_write(cJSON *root, const Model *model) {
    const TransformerSizes s = model->transformer;
    const Attention *a = &s.attention;
    cJSON_AddNumberToObject(root, "num_hidden_layers", s.layers);
    cJSON_AddNumberToObject(root, "hidden_size", s.width);
    cJSON_AddNumberToObject(root, "num_attention_heads", a->heads);
    cJSON_AddNumberToObject(root, "num_key_value_heads", a->groups);
    cJSON_AddNumberToObject(root, "head_dim", a->d);
    cJSON_AddNumberToObject(root, "intermediate_size", s.ffn);
    /* transformers wants more positions than those that were scaled. */
    cJSON_AddNumberToObject(root, "max_position_embeddings",
                            fmax(s.context, a->rope.factor * a->rope.original));
    cJSON_AddStringToObject(root, "hidden_act", "silu");
    cJSON_AddNumberToObject(root, "rms_norm_eps", s.eps);
    add_rope(root, "rope_parameters", &a->rope);
    cJSON_AddNumberToObject(root, "rope_theta", a->rope.base); /* older versions look here */
    if (a->rope.factor > 1) add_rope(root, "rope_scaling", &a->rope);
    cJSON_AddBoolToObject(root, "tie_word_embeddings", s.tied);
    no_special_tokens(root);
}

void bias_write(cJSON *root, TransformerSizes s) {
    cJSON_AddBoolToObject(root, "attention_bias", s.bias == BIAS_ALL);
}

void mistral_write(cJSON *root, TransformerSizes s) {
    const int window = s.attention.window;
    cJSON_AddItemToObject(root, "sliding_window",
                          window ? cJSON_CreateNumber(window) : cJSON_CreateNull());
}

void smollm3_write(cJSON *root, TransformerSizes s) {
    cJSON *list = cJSON_AddArrayToObject(root, "no_rope_layers");
    bias_write(root, s);
    for (int i = 1; i <= s.layers; i++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber(s.rope_skip && i % s.rope_skip == 0 ? 0 : 1));
}
