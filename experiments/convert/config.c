/* Reads config.json: the sizes of a model, and settings that our models have fixed.  A setting that
 * is not known here may change what the model computes, so it is refused. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../data/file.h"
#include "../../ref/base/error.h"
#include "families.h"
#include "json.h"

/* Returns a setting; NULL if it is left out or null. */
static const cJSON *find(Config *config, const char *key) {
    bool read = false;
    for (int i = 0; i < config->count; i++) read = read || strcmp(config->read[i], key) == 0;
    if (!read) config->read[config->count++] = key;
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(config->root, key);
    return cJSON_IsNull(item) ? NULL : item;
}

/* Reads a whole number from 1 up.  -1 and an error. */
static int read_size(Config *config, const char *key, int *size) {
    const cJSON *item = find(config, key);
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 1 && item->valuedouble <= 1 << 24) ||
        item->valuedouble != floor(item->valuedouble))
        return error_set("%s: %s must be a whole number from 1 up", config->path, key);
    *size = (int)item->valuedouble;
    return 0;
}

/* The same of a setting that may be left out; *size stays then. */
static int read_optional_size(Config *config, const char *key, int *size) {
    return find(config, key) ? read_size(config, key, size) : 0;
}

/* Reads true or false, which stays if it is left out. */
static int read_bool(Config *config, const char *key, bool *value) {
    const cJSON *item = find(config, key);
    if (!item) return 0;
    if (!cJSON_IsBool(item)) return error_set("%s: %s must be true or false", config->path, key);
    *value = cJSON_IsTrue(item);
    return 0;
}

static int refuse(Config *config, const char *key, const char *supported) {
    char *text = cJSON_PrintUnformatted(find(config, key));
    error_set("%s: %s%s is %.60s; only %s is supported", config->path, config->inside, key,
              text ? text : "not given", supported);
    cJSON_free(text);
    return -1;
}

/* Refuses a setting other than `supported` or, unless NULL, `also`.  One that is left out has its
 * default in transformers, which is supported. */
static int must_be(Config *config, const char *key, const char *supported, const char *also) {
    const cJSON *item = find(config, key);
    char *number = cJSON_PrintUnformatted(item); /* or true or false */
    const char *value = cJSON_IsString(item) ? item->valuestring : number ? number : "";
    const bool ok = !item || !strcmp(value, supported) || (also && !strcmp(value, also));
    cJSON_free(number);
    return ok ? 0 : refuse(config, key, supported);
}

/* Reads a number; `left_out` is its value if it is missing.  -1 and an error. */
static int read_number(Config *config, const char *key, double left_out, double *number) {
    const cJSON *item = find(config, key);
    *number = item ? cJSON_GetNumberValue(item) : left_out; /* NAN if it is no number */
    return isnan(*number)
               ? error_set("%s: %s%s must be a number", config->path, config->inside, key)
               : 0;
}

/* Reads the epsilon of the norms into a setting of our specification; empty if it is our
 * default. */
static int read_eps(Config *config, const char *key, double left_out, Text *setting) {
    double eps;
    if (read_number(config, key, left_out, &eps) || !(eps >= 1e-12 && eps <= 1))
        return error_set("%s: %s must be a number from 1e-12 to 1", config->path, key);
    *setting = (Text){""};
    if (fabs(eps - 1e-5) > 1e-11) *setting = text_of(",eps=%.15g", eps);
    return 0;
}

/* ---- settings that are not ours ---------------------------------------------------------------
 */

/* These say how a model is trained, stored, run or made to write, but not what it computes.
 * Dropout is for training; ours has none. */
static const char *const harmless[] = {
    "_attn_implementation_autoset",
    "_name_or_path",
    "architectures",
    "attention_dropout",
    "attn_implementation",
    "attn_pdrop",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "chunk_size_feed_forward",
    "classifier_dropout",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "dtype",
    "early_stopping",
    "embd_pdrop",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "gradient_checkpointing",
    "id2label",
    "initializer_range",
    "is_decoder",
    "is_llama_config",
    "label2id",
    "length_penalty",
    "max_length",
    "max_sequence_length",
    "min_length",
    "model_type",
    "n_ctx",
    "name_or_path",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "pad_token_id",
    "prefix",
    "pretraining_tp",
    "problem_type",
    "remove_invalid_values",
    "reorder_and_upcast_attn",
    "repetition_penalty",
    "resid_pdrop",
    "return_dict",
    "return_dict_in_generate",
    "sep_token_id",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers.js_config",
    "transformers_version",
    "typical_p",
    "unsloth_fixed",
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
};

/* Refuses the settings that were not looked for, unless they are null or among the first `count`
 * harmless ones. */
static int check_rest(const Config *config, size_t count) {
    const cJSON *item;
    cJSON_ArrayForEach(item, config->root) {
        bool known = cJSON_IsNull(item);
        for (int i = 0; i < config->count && !known; i++)
            known = strcmp(config->read[i], item->string) == 0;
        for (size_t i = 0; i < count && !known; i++) known = !strcmp(harmless[i], item->string);
        if (known) continue;
        char *text = cJSON_PrintUnformatted(item);
        error_set("%s: %s%.60s is %.60s; this setting is not supported", config->path,
                  config->inside, item->string, text ? text : "");
        cJSON_free(text);
        return -1;
    }
    return 0;
}

/* What all families have switched off. */
static int check_common(Config *c) {
    return must_be(c, "is_encoder_decoder", "false", NULL) ||
           must_be(c, "add_cross_attention", "false", NULL) ||
           must_be(c, "pruned_heads", "{}", NULL);
}

static int check_context(Config *c, int context, int positions) {
    if (context <= positions) return 0;
    return error_set("--context %d: %s has only %d positions", context, c->path, positions);
}

/* ---- families ---------------------------------------------------------------------------------
 */

int gpt_read(char spec[OPTION_TEXT], Config *c, int context, const HfFamily *family) {
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
        must_be(c, "tie_word_embeddings", "true", NULL))
        return -1;
    if (find(c, "n_inner") && (read_size(c, "n_inner", &ffn) || ffn != 4 * s.width))
        return refuse(c, "n_inner", "4 n_embd");
    if (check_context(c, context, positions)) return -1;
    snprintf(spec, OPTION_TEXT, "%s:layers=%d,width=%d,heads=%d,context=%d,vocabulary=%d%s",
             family->family, s.layers, s.width, s.attention.heads, context ? context : positions,
             s.vocabulary, eps.text);
    return 0;
}

/* Reads the settings of rotary positions, whose place and names have changed over time. */
static int read_rope(Config *c, int positions, Rope *rope) {
    static const char *const places[] = {"rope_scaling", "rope_parameters"};
    Config in = {.path = c->path, .inside = ""};
    *rope = (Rope){.factor = 1};
    for (int i = 0; i < 2; i++) {
        const cJSON *item = find(c, places[i]);
        if (item && !cJSON_IsObject(item)) return refuse(c, places[i], "an object");
        if (in.root || !item || !item->child) continue; /* transformers takes the first, too */
        in.root = item;
        in.inside = i ? "rope_parameters." : "rope_scaling.";
    }
    const char *type_key = find(&in, "rope_type") ? "rope_type" : "type";
    const cJSON *type = find(&in, type_key);
    const char *kind = !type ? "default" : cJSON_IsString(type) ? type->valuestring : "";
    const bool linear = strcmp(kind, "linear") == 0, llama3 = strcmp(kind, "llama3") == 0;
    if (read_number(c, "rope_theta", 10000, &rope->base) ||
        read_number(&in, "rope_theta", rope->base, &rope->base) ||
        must_be(c, "partial_rotary_factor", "1", "1.0") ||
        must_be(&in, "partial_rotary_factor", "1", "1.0") ||
        must_be(c, "rope_interleaved", "false", NULL))
        return -1;
    if (!linear && !llama3 && strcmp(kind, "default"))
        return refuse(&in, type_key, "default, linear or llama3");
    if ((linear || llama3) && read_number(&in, "factor", NAN, &rope->factor)) return -1;
    if (llama3 &&
        (read_number(&in, "low_freq_factor", NAN, &rope->low) ||
         read_number(&in, "high_freq_factor", NAN, &rope->high) ||
         read_number(&in, "original_max_position_embeddings", positions, &rope->original) ||
         read_number(c, "original_max_position_embeddings", rope->original, &rope->original)))
        return -1;
    if (llama3 && !(rope->factor > 1)) rope->low = rope->high = rope->original = 0;
    find(&in, "type"); /* older names may stand next to newer ones */
    return check_rest(&in, 0);
}

/* Mistral is LLaMA with windowed attention, which makes no difference up to the window's size. */
static int check_window(Config *c, int context) {
    const cJSON *item = find(c, "sliding_window");
    const bool given = cJSON_HasObjectItem(c->root, "sliding_window");
    const double window = item ? cJSON_GetNumberValue(item) : 4096;
    if ((given && !item) || context <= window) return 0;
    return error_set(
        "%s: sliding_window is %g, which is not supported; give a --context up to that", c->path,
        window);
}

int llama_read(char spec[OPTION_TEXT], Config *c, int context, const HfFamily *family) {
    TransformerSizes s = {0};
    Text eps;
    int positions = 0;
    Attention *a = &s.attention;
    Rope *r = &a->rope;
    const bool mistral = strcmp(family->model_type, "mistral") == 0;
    if (read_size(c, "num_hidden_layers", &s.layers) || read_size(c, "hidden_size", &s.width) ||
        read_size(c, "num_attention_heads", &a->heads) ||
        read_size(c, "intermediate_size", &s.ffn) ||
        read_size(c, "max_position_embeddings", &positions) ||
        read_size(c, "vocab_size", &s.vocabulary) || must_be(c, "hidden_act", "silu", "swish") ||
        read_eps(c, "rms_norm_eps", 1e-6, &eps) || check_context(c, context, positions) ||
        read_rope(c, positions, r) || must_be(c, "attention_bias", "false", NULL) ||
        must_be(c, "mlp_bias", "false", NULL) || read_bool(c, "tie_word_embeddings", &s.tied))
        return -1;
    a->groups = family->groups ? family->groups : a->heads;
    a->d = s.width / a->heads;
    s.context = context ? context : positions;
    if (read_optional_size(c, "num_key_value_heads", &a->groups) ||
        read_optional_size(c, "head_dim", &a->d) || (mistral && check_window(c, s.context)))
        return -1;
    Text text = text_of(
        "%s:layers=%d,width=%d,heads=%d,ffn=%d,context=%d,vocabulary=%d%s,"
        "groups=%d,head_size=%d,tied=%d,rope_base=%.15g,rope_factor=%.15g",
        family->family, s.layers, s.width, a->heads, s.ffn, s.context, s.vocabulary, eps.text,
        a->groups, a->d, s.tied, r->base, r->factor);
    if (r->original > 0)
        text_add(&text, ",rope_low=%.15g,rope_high=%.15g,rope_original=%.15g", r->low, r->high,
                 r->original);
    strcpy(spec, text.text); /* at most 400 characters */
    return 0;
}

/* ---- any ------------------------------------------------------------------------------------- */

static const char *model_type(Config *config) {
    const cJSON *type = find(config, "model_type");
    return cJSON_IsString(type) ? type->valuestring : "not given";
}

static int refuse_type(Config *config) {
    Text known = {""};
    for (const HfFamily *f = hf_families; f->model_type; f++)
        text_add(&known, "%s%s",
                 f == hf_families  ? ""
                 : f[1].model_type ? ", "
                                   : " and ",
                 f->model_type);
    return error_set("%s: model_type is %.60s; supported are %s", config->path, model_type(config),
                     known.text);
}

int convert_spec(char spec[OPTION_TEXT], const char *dir, int context) {
    char path[PATH_BYTES];
    if (convert_is_tensors(dir))
        return error_set("%s: holds only tensors; bcd train --init takes it, together with --model",
                         dir);
    if (path_join(path, dir, "config.json")) return -1;
    cJSON *root = json_read(path, "a model directory has one");
    if (!root) return -1;
    Config config = {.path = path, .inside = "", .root = root};
    const HfFamily *family = hf_families;
    while (family->model_type && strcmp(family->model_type, model_type(&config))) family++;
    int failed = !family->model_type
                     ? refuse_type(&config)
                     : family->read(spec, &config, context, family) || check_common(&config) ||
                           check_rest(&config, sizeof harmless / sizeof *harmless);
    cJSON_Delete(root);
    return failed ? -1 : 0;
}
