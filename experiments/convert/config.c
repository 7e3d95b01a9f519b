/* Reads and writes config.json: the sizes of a model, and settings that our models have fixed. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "convert.h"

/* ---- reading -------------------------------------------------------------------------------- */

typedef struct {
    const char *path;
    const cJSON *root;
} Config;

static const cJSON *find(const Config *config, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(config->root, key);
    return cJSON_IsNull(item) ? NULL : item;
}

/* Reads a whole number from 1 up.  -1 and an error. */
static int read_size(const Config *config, const char *key, int *size) {
    const cJSON *item = find(config, key);
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 1 && item->valuedouble <= 1 << 24) ||
        item->valuedouble != floor(item->valuedouble))
        return error_set("%s: %s must be a whole number from 1 up", config->path, key);
    *size = (int)item->valuedouble;
    return 0;
}

static int refuse(const Config *config, const char *key, const char *supported) {
    char *text = cJSON_PrintUnformatted(find(config, key));
    error_set("%s: %s is %.60s; only %s is supported", config->path, key, text ? text : "not given",
              supported);
    cJSON_free(text);
    return -1;
}

/* Refuses a setting other than `supported` or, unless NULL, `also`.  One that is left out has its
 * default in transformers, which is supported. */
static int must_be(const Config *config, const char *key, const char *supported, const char *also) {
    const cJSON *item = find(config, key);
    char *number = cJSON_PrintUnformatted(item); /* or true or false */
    const char *value = cJSON_IsString(item) ? item->valuestring : number ? number : "";
    const bool ok = !item || !strcmp(value, supported) || (also && !strcmp(value, also));
    cJSON_free(number);
    return ok ? 0 : refuse(config, key, supported);
}

/* Reads a number; `left_out` is its value if it is missing.  -1 and an error. */
static int read_number(const Config *config, const char *key, double left_out, double *number) {
    const cJSON *item = find(config, key);
    *number = item ? cJSON_GetNumberValue(item) : left_out; /* NAN if it is no number */
    return isnan(*number) ? error_set("%s: %s must be a number", config->path, key) : 0;
}

/* Reads the epsilon of the norms into a setting of our specification; empty if it is our
 * default. */
static int read_eps(const Config *config, const char *key, double left_out, Text *setting) {
    double eps;
    if (read_number(config, key, left_out, &eps) || !(eps >= 1e-12 && eps <= 1))
        return error_set("%s: %s must be a number from 1e-12 to 1", config->path, key);
    *setting = (Text){""};
    if (fabs(eps - 1e-5) > 1e-11) *setting = text_of(",eps=%.15g", eps);
    return 0;
}

static int check_context(const Config *c, int context, int positions) {
    if (context <= positions) return 0;
    return error_set("--context %d: %s has only %d positions", context, c->path, positions);
}

static int gpt_spec(char spec[OPTION_TEXT], const Config *c, int context) {
    TransformerSizes s = {0};
    Text eps;
    int ffn = 0, positions = 0;
    if (read_size(c, "n_layer", &s.layers) || read_size(c, "n_embd", &s.width) ||
        read_size(c, "n_head", &s.attention.heads) || read_size(c, "n_positions", &positions) ||
        read_size(c, "vocab_size", &s.vocabulary) ||
        must_be(c, "activation_function", "gelu_new", "gelu_pytorch_tanh") ||
        read_eps(c, "layer_norm_epsilon", 1e-5, &eps) ||
        must_be(c, "scale_attn_weights", "true", NULL) ||
        must_be(c, "scale_attn_by_inverse_layer_idx", "false", NULL) ||
        must_be(c, "add_cross_attention", "false", NULL) ||
        must_be(c, "tie_word_embeddings", "true", NULL))
        return -1;
    if (find(c, "n_inner") && (read_size(c, "n_inner", &ffn) || ffn != 4 * s.width))
        return refuse(c, "n_inner", "4 n_embd");
    if (check_context(c, context, positions)) return -1;
    snprintf(spec, OPTION_TEXT, "gpt:layers=%d,width=%d,heads=%d,context=%d,vocabulary=%d%s",
             s.layers, s.width, s.attention.heads, context ? context : positions, s.vocabulary,
             eps.text);
    return 0;
}

static const char *model_type(const Config *config) {
    const cJSON *type = find(config, "model_type");
    return cJSON_IsString(type) ? type->valuestring : "not given";
}

/* Reads the settings of rotary positions, whose place and names have changed over time. */
static int read_rope(const Config *c, int positions, Rope *rope) {
    const cJSON *older = find(c, "rope_scaling"), *newer = find(c, "rope_parameters");
    const Config in = {c->path, older ? older : newer};
    const char *type_key = find(&in, "rope_type") ? "rope_type" : "type";
    const cJSON *type = find(&in, type_key);
    const char *kind = !type ? "default" : cJSON_IsString(type) ? type->valuestring : "";
    *rope = (Rope){.factor = 1};
    if (read_number(c, "rope_theta", 10000, &rope->base) ||
        read_number(&in, "rope_theta", rope->base, &rope->base) ||
        must_be(c, "partial_rotary_factor", "1", NULL) ||
        must_be(&in, "partial_rotary_factor", "1", NULL))
        return -1;
    const bool linear = strcmp(kind, "linear") == 0, llama3 = strcmp(kind, "llama3") == 0;
    if (!linear && !llama3)
        return strcmp(kind, "default") ? refuse(&in, type_key, "default, linear or llama3") : 0;
    if (read_number(&in, "factor", NAN, &rope->factor)) return -1;
    if (!llama3 || !(rope->factor > 1)) return 0;
    return read_number(&in, "low_freq_factor", NAN, &rope->low) ||
           read_number(&in, "high_freq_factor", NAN, &rope->high) ||
           read_number(&in, "original_max_position_embeddings", positions, &rope->original) ||
           read_number(c, "original_max_position_embeddings", rope->original, &rope->original);
}

/* Mistral is LLaMA with windowed attention, which makes no difference up to the window's size. */
static int check_window(const Config *c, int context) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(c->root, "sliding_window");
    const double window = item ? cJSON_GetNumberValue(item) : 4096;
    if (cJSON_IsNull(item) || context <= window) return 0;
    return error_set(
        "%s: sliding_window is %g, which is not supported; give a --context up to that", c->path,
        window);
}

static int llama_spec(char spec[OPTION_TEXT], const Config *c, int context) {
    TransformerSizes s = {0};
    Text eps;
    int positions = 0, tied = cJSON_IsTrue(find(c, "tie_word_embeddings"));
    Attention *a = &s.attention;
    Rope *r = &a->rope;
    const bool mistral = strcmp(model_type(c), "mistral") == 0;
    if (read_size(c, "num_hidden_layers", &s.layers) || read_size(c, "hidden_size", &s.width) ||
        read_size(c, "num_attention_heads", &a->heads) ||
        read_size(c, "intermediate_size", &s.ffn) ||
        read_size(c, "max_position_embeddings", &positions) ||
        read_size(c, "vocab_size", &s.vocabulary) || must_be(c, "hidden_act", "silu", "swish") ||
        read_eps(c, "rms_norm_eps", 1e-6, &eps) || check_context(c, context, positions) ||
        read_rope(c, positions, r) || must_be(c, "attention_bias", "false", NULL) ||
        must_be(c, "mlp_bias", "false", NULL))
        return -1;
    a->groups = mistral ? 8 : a->heads;
    a->d = s.width / a->heads;
    if (find(c, "num_key_value_heads") && read_size(c, "num_key_value_heads", &a->groups))
        return -1;
    if (find(c, "head_dim") && read_size(c, "head_dim", &a->d)) return -1;
    s.context = context ? context : positions;
    if (mistral && check_window(c, s.context)) return -1;
    Text text = text_of(
        "llama:layers=%d,width=%d,heads=%d,ffn=%d,context=%d,vocabulary=%d%s,"
        "groups=%d,head_size=%d,tied=%d,rope_base=%.15g,rope_factor=%.15g",
        s.layers, s.width, a->heads, s.ffn, s.context, s.vocabulary, eps.text, a->groups, a->d,
        tied, r->base, r->factor);
    if (r->original > 0)
        text_add(&text, ",rope_low=%.15g,rope_high=%.15g,rope_original=%.15g", r->low, r->high,
                 r->original);
    strcpy(spec, text.text); /* at most 400 characters */
    return 0;
}

/* Reads the config.json of a directory into *root, which the caller deletes; NULL if it is not
 * JSON. -1 and an error. */
static int read_config(cJSON **root, char path[PATH_BYTES], const char *dir) {
    size_t bytes;
    if (path_join(path, dir, "config.json")) return -1;
    unsigned char *text = file_read("init", path, "a model directory has one", &bytes);
    if (!text) return -1;
    *root = cJSON_ParseWithLength((const char *)text, bytes);
    free(text);
    return 0;
}

/* ---- writing -------------------------------------------------------------------------------- */

enum { GPT2_END_OF_TEXT = 50256 };

static void add_gpt(cJSON *root, TransformerSizes s) {
    cJSON_AddNumberToObject(root, "n_layer", s.layers);
    cJSON_AddNumberToObject(root, "n_embd", s.width);
    cJSON_AddNumberToObject(root, "n_head", s.attention.heads);
    cJSON_AddNumberToObject(root, "n_positions", s.context);
    cJSON_AddNumberToObject(root, "n_ctx", s.context);
    cJSON_AddStringToObject(root, "activation_function", "gelu_new");
    cJSON_AddNumberToObject(root, "layer_norm_epsilon", s.eps);
    cJSON_AddTrueToObject(root, "tie_word_embeddings");
    if (s.vocabulary > GPT2_END_OF_TEXT) return;
    cJSON_AddNullToObject(root, "bos_token_id"); /* left out, they are GPT-2's */
    cJSON_AddNullToObject(root, "eos_token_id");
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

static void add_llama(cJSON *root, TransformerSizes s) {
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
}

/* ---- both ----------------------------------------------------------------------------------- */

static const struct {
    const char *model_type, *architecture, *family; /* their names, and ours of what we write */
    int (*read)(char spec[OPTION_TEXT], const Config *config, int context);
    void (*write)(cJSON *root, TransformerSizes sizes);
} families[] = {{"gpt2", "GPT2LMHeadModel", "gpt", gpt_spec, add_gpt},
                {"llama", "LlamaForCausalLM", "llama", llama_spec, add_llama},
                {"mistral", "", "", llama_spec, NULL}};
enum { FAMILIES = sizeof families / sizeof *families };

int convert_spec(char spec[OPTION_TEXT], const char *dir, int context) {
    char path[PATH_BYTES];
    cJSON *root;
    if (convert_is_tensors(dir))
        return error_set("%s: holds only tensors; bcd train --init takes it, together with --model",
                         dir);
    if (read_config(&root, path, dir)) return -1;
    Config config = {path, root};
    const char *type = model_type(&config);
    size_t f = 0;
    while (f < FAMILIES && strcmp(families[f].model_type, type)) f++;
    int failed = !cJSON_IsObject(root) ? error_set("%s: not a JSON object", path)
                 : f < FAMILIES
                     ? families[f].read(spec, &config, context)
                     : error_set("%s: model_type is %.40s; supported are gpt2, llama and mistral",
                                 path, type);
    cJSON_Delete(root);
    return failed;
}

static cJSON *describe(const Model *model) {
    cJSON *root = cJSON_CreateObject();
    size_t f = 0;
    while (strcmp(families[f].family, model->family)) f++;
    cJSON_AddStringToObject(root, "model_type", families[f].model_type);
    cJSON_AddItemToArray(cJSON_AddArrayToObject(root, "architectures"),
                         cJSON_CreateString(families[f].architecture));
    families[f].write(root, model->transformer);
    cJSON_AddNumberToObject(root, "vocab_size", model->transformer.vocabulary);
    return root;
}

int convert_write_config(const char *path, const Model *model, const char *init) {
    char from[PATH_BYTES];
    cJSON *root = init ? NULL : describe(model);
    if (init && read_config(&root, from, init)) return -1;
    cJSON_DeleteItemFromObject(root, "dtype"); /* its newer name */
    cJSON_DeleteItemFromObject(root, "torch_dtype");
    cJSON_AddStringToObject(root, "torch_dtype", "float32");
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    if (!text) return error_set("%s: out of memory", path);
    const size_t length = strlen(text);
    text[length] = '\n'; /* in place of the zero behind it */
    int failed = file_write(path, text, length + 1);
    cJSON_free(text);
    return failed;
}
