/* What the families read of config.json: the sizes of a model, and settings that our models have
 * fixed. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "families.h"

/* Reads the epsilon of the norms into a setting of our specification; empty if it is our
 * default. */
static int read_eps(Config *config, const char *key, double left_out, Text *setting) {
    double eps;
    if (config_number(config, key, left_out, &eps) || !(eps >= 1e-12 && eps <= 1))
        return error_set("%s: %s must be a number from 1e-12 to 1", config->path, key);
    *setting = (Text){""};
    if (fabs(eps - 1e-5) > 1e-11) *setting = text_of(",eps=%.15g", eps);
    return 0;
}

/* The most that our models take; rotary positions need no table, so the rest is not lost. */
enum { CONTEXT_MAX = 1 << 20 };

static int check_context(Config *c, int context, int positions) {
    if (context <= positions) return 0;
    return error_set("--context %d: %s has only %d positions", context, c->path, positions);
}

/* ---- families -------------------------------------------------------------------------------- */

int gpt_read(char spec[OPTION_TEXT], Config *c, int context, const HfFamily *family) {
    TransformerSizes s = {0};
    Text eps;
    int ffn = 0, positions = 0;
    if (config_size(c, "n_layer", &s.layers) || config_size(c, "n_embd", &s.width) ||
        config_size(c, "n_head", &s.attention.heads) || config_size(c, "n_positions", &positions) ||
        config_size(c, "vocab_size", &s.vocabulary) ||
        config_must_be(c, "activation_function", "gelu_new", "gelu_pytorch_tanh") ||
        read_eps(c, "layer_norm_epsilon", family->eps, &eps) ||
        config_must_be(c, "scale_attn_weights", "true", NULL) ||
        config_must_be(c, "scale_attn_by_inverse_layer_idx", "false", NULL) ||
        config_must_be(c, "tie_word_embeddings", "true", NULL))
        return -1;
    if (config_find(c, "n_inner") && (config_size(c, "n_inner", &ffn) || ffn != 4 * s.width))
        return config_refuse(c, "n_inner", "4 n_embd");
    if (check_context(c, context, positions)) return -1;
    snprintf(spec, OPTION_TEXT, "%s:layers=%d,width=%d,heads=%d,context=%d,vocabulary=%d%s",
             family->family, s.layers, s.width, s.attention.heads, context ? context : positions,
             s.vocabulary, eps.text);
    return 0;
}

/* Reads the settings of rotary positions, whose place and names have changed over time. */
static int read_rope(Config *c, int positions, double theta, Rope *rope) {
    static const char *const places[] = {"rope_scaling", "rope_parameters"};
    Config in = {.path = c->path, .inside = ""};
    *rope = (Rope){.factor = 1};
    for (int i = 0; i < 2; i++) {
        const cJSON *item = config_find(c, places[i]);
        if (item && !cJSON_IsObject(item)) return config_refuse(c, places[i], "an object");
        if (in.root || !item || !item->child) continue; /* transformers takes the first, too */
        in.root = item;
        in.inside = i ? "rope_parameters." : "rope_scaling.";
    }
    const char *type_key = config_find(&in, "rope_type") ? "rope_type" : "type";
    const cJSON *type = config_find(&in, type_key);
    const char *kind = !type ? "default" : cJSON_IsString(type) ? type->valuestring : "";
    const bool linear = strcmp(kind, "linear") == 0, llama3 = strcmp(kind, "llama3") == 0;
    if (config_number(c, "rope_theta", theta, &rope->base) ||
        config_number(&in, "rope_theta", rope->base, &rope->base) ||
        config_must_be(c, "partial_rotary_factor", "1", NULL) ||
        config_must_be(&in, "partial_rotary_factor", "1", NULL) ||
        config_must_be(c, "rope_interleaved", "false", NULL))
        return -1;
    if (!linear && !llama3 && strcmp(kind, "default"))
        return config_refuse(&in, type_key, "default, linear or llama3");
    if ((linear || llama3) && config_number(&in, "factor", NAN, &rope->factor)) return -1;
    if (llama3 &&
        (config_number(&in, "low_freq_factor", NAN, &rope->low) ||
         config_number(&in, "high_freq_factor", NAN, &rope->high) ||
         config_number(&in, "original_max_position_embeddings", positions, &rope->original) ||
         config_number(c, "original_max_position_embeddings", rope->original, &rope->original)))
        return -1;
    if (llama3 && !(rope->factor > 1)) rope->low = rope->high = rope->original = 0;
    config_find(&in, "type"); /* older names may stand next to newer ones */
    return config_check_rest(&in, false);
}

int llama_read(char spec[OPTION_TEXT], Config *c, int context, const HfFamily *family) {
    TransformerSizes s = {.tied = family->tied};
    Text eps;
    int positions = 0;
    Attention *a = &s.attention;
    Rope *r = &a->rope;
    if (config_size(c, "num_hidden_layers", &s.layers) || config_size(c, "hidden_size", &s.width) ||
        config_size(c, "num_attention_heads", &a->heads) ||
        config_size(c, "intermediate_size", &s.ffn) ||
        config_size(c, "max_position_embeddings", &positions) ||
        config_size(c, "vocab_size", &s.vocabulary) ||
        config_must_be(c, "hidden_act", "silu", "swish") ||
        read_eps(c, "rms_norm_eps", family->eps, &eps) || check_context(c, context, positions) ||
        read_rope(c, positions, family->rope_theta, r) ||
        config_must_be(c, "mlp_bias", "false", NULL) ||
        config_bool(c, "tie_word_embeddings", &s.tied))
        return -1;
    /* null means as many as heads; only where the key is missing it is the family's. */
    const cJSON *groups = cJSON_GetObjectItemCaseSensitive(c->root, "num_key_value_heads");
    a->groups = family->groups && !cJSON_IsNull(groups) ? family->groups : a->heads;
    a->d = family->head_dim ? family->head_dim : s.width / a->heads;
    s.context = context ? context : positions < CONTEXT_MAX ? positions : CONTEXT_MAX;
    if (config_optional_size(c, "num_key_value_heads", &a->groups) ||
        config_optional_size(c, "head_dim", &a->d))
        return -1;
    Text text = text_of(
        "%s:layers=%d,width=%d,heads=%d,ffn=%d,context=%d,vocabulary=%d%s,"
        "groups=%d,head_size=%d,tied=%d,rope_base=%.15g,rope_factor=%.15g",
        family->family, s.layers, s.width, a->heads, s.ffn, s.context, s.vocabulary, eps.text,
        a->groups, a->d, s.tied, r->base, r->factor);
    if (r->original > 0)
        text_add(&text, ",rope_low=%.15g,rope_high=%.15g,rope_original=%.15g", r->low, r->high,
                 r->original);
    if (family->read_more(&text, c)) return -1;
    strcpy(spec, text.text); /* at most 450 characters */
    return 0;
}

/* ---- what the relatives of LLaMA have of their own ------------------------------------------- */

int llama_more(Text *spec, Config *c) {
    bool bias = false;
    if (config_bool(c, "attention_bias", &bias)) return -1;
    if (bias) text_add(spec, ",attention_bias=1");
    return 0;
}

int mistral_more(Text *spec, Config *c) {
    int window = 4096; /* if it is left out */
    if (config_must_be(c, "attention_bias", "false", NULL)) return -1;
    const bool none = !config_find(c, "sliding_window") &&
                      cJSON_GetObjectItemCaseSensitive(c->root, "sliding_window");
    if (none) return 0;
    if (config_optional_size(c, "sliding_window", &window)) return -1;
    text_add(spec, ",window=%d", window);
    return 0;
}

/* Refuses windows in some of the layers.  Where they are switched off, their sizes do not matter.
 */
static int check_windows(Config *c) {
    const cJSON *types = config_find(c, "layer_types"), *type;
    config_find(c, "sliding_window");
    config_find(c, "max_window_layers");
    if (config_must_be(c, "use_sliding_window", "false", NULL)) return -1;
    cJSON_ArrayForEach(type, types) {
        if (!cJSON_IsString(type) || strcmp(type->valuestring, "full_attention"))
            return config_refuse(c, "layer_types", "full_attention");
    }
    return 0;
}

int qwen2_more(Text *spec, Config *c) {
    (void)spec;
    return check_windows(c) || config_must_be(c, "attention_bias", "false", NULL) ||
           config_must_be(c, "use_mrope", "false", NULL);
}

int qwen3_more(Text *spec, Config *c) { return check_windows(c) || llama_more(spec, c); }

/* Overwrites *skip with the interval of the layers whose number in the list is 0, which means no
 * rotary positions; 0 if there are none.  -1 and an error if they are not evenly spaced. */
static int read_interval(Config *c, const cJSON *list, int layers, int *skip) {
    *skip = 0;
    bool even = cJSON_IsArray(list) && cJSON_GetArraySize(list) == layers;
    for (int i = 0; even && i < layers; i++) {
        const cJSON *item = cJSON_GetArrayItem(list, i);
        const bool without = cJSON_IsNumber(item) && item->valuedouble == 0;
        if (without && !*skip) *skip = i + 1;
        even = cJSON_IsNumber(item) && without == (*skip && (i + 1) % *skip == 0);
    }
    return even ? 0
                : config_refuse(c, "no_rope_layers", "one number for each layer, every n-th 0,");
}

int smollm3_more(Text *spec, Config *c) {
    int layers = 0, skip = 4;
    const cJSON *list = config_find(c, "no_rope_layers");
    if (qwen3_more(spec, c) || config_size(c, "num_hidden_layers", &layers) ||
        config_optional_size(c, "no_rope_layer_interval", &skip) ||
        (list && read_interval(c, list, layers, &skip)))
        return -1;
    text_add(spec, ",rope_skip=%d", skip);
    return 0;
}
