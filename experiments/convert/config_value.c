/* Reads the settings of a config.json one by one.  One that is not known may change what the model
 * computes, so it is refused. */
#include <math.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "families.h"

const cJSON *config_find(Config *config, const char *key) {
    bool read = false;
    for (int i = 0; i < config->count; i++) read = read || strcmp(config->read[i], key) == 0;
    if (!read) config->read[config->count++] = key;
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(config->root, key);
    return cJSON_IsNull(item) ? NULL : item;
}

int config_size(Config *config, const char *key, int *size) {
    enum { MOST = 1 << 24 };
    const cJSON *item = config_find(config, key);
    if (!item) return error_set("%s: %s is missing", config->path, key);
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 1 && item->valuedouble <= MOST) ||
        item->valuedouble != floor(item->valuedouble))
        return error_set("%s: %s must be a whole number from 1 to %d", config->path, key, MOST);
    *size = (int)item->valuedouble;
    return 0;
}

int config_optional_size(Config *config, const char *key, int *size) {
    return config_find(config, key) ? config_size(config, key, size) : 0;
}

int config_bool(Config *config, const char *key, bool *value) {
    const cJSON *item = config_find(config, key);
    if (!item) return 0;
    if (!cJSON_IsBool(item)) return error_set("%s: %s must be true or false", config->path, key);
    *value = cJSON_IsTrue(item);
    return 0;
}

int config_refuse(Config *config, const char *key, const char *supported) {
    char *text = cJSON_PrintUnformatted(config_find(config, key));
    error_set("%s: %s%s is %.60s; only %s is supported", config->path, config->inside, key,
              text ? text : "not given", supported);
    cJSON_free(text);
    return -1;
}

int config_must_be(Config *config, const char *key, const char *supported, const char *also) {
    const cJSON *item = config_find(config, key);
    char *number = cJSON_PrintUnformatted(item); /* or true or false */
    const char *value = cJSON_IsString(item) ? item->valuestring : number ? number : "";
    const bool ok = !item || !strcmp(value, supported) || (also && !strcmp(value, also));
    cJSON_free(number);
    return ok ? 0 : config_refuse(config, key, supported);
}

int config_number(Config *config, const char *key, double left_out, double *number) {
    const cJSON *item = config_find(config, key);
    *number = item ? cJSON_GetNumberValue(item) : left_out; /* NAN if it is no number */
    return isnan(*number)
               ? error_set("%s: %s%s must be a number", config->path, config->inside, key)
               : 0;
}

/* ---- settings that are not ours -------------------------------------------------------------- */

/* These say how a model is trained, stored, run or made to write, but not what it computes.
 * Dropout is for training; ours has none. */
/* clang-format off */
static const char *const harmless[] = {
    "_attn_implementation", "_attn_implementation_autoset", "_attn_implementation_internal",
    "_commit_hash", "_flash_attn_2_enabled", "_name_or_path", "_num_labels", "architectures",
    "attention_dropout", "attn_implementation", "attn_pdrop", "bad_words_ids",
    "begin_suppress_tokens", "bos_token_id", "chunk_size_feed_forward", "classifier_dropout",
    "decoder_start_token_id", "diversity_penalty", "do_sample", "dtype", "early_stopping",
    "embd_pdrop", "encoder_no_repeat_ngram_size", "eos_token_id",
    "exponential_decay_length_penalty", "finetuning_task", "forced_bos_token_id",
    "forced_eos_token_id", "gradient_checkpointing", "id2label", "initializer_range", "is_decoder",
    "is_llama_config", "keys_to_ignore_at_inference", "label2id", "length_penalty", "max_length",
    "max_sequence_length", "min_length", "model_max_length", "model_type", "n_ctx", "n_special",
    "name_or_path", "no_repeat_ngram_size", "num_beam_groups", "num_beams", "num_labels",
    "num_return_sequences", "output_attentions", "output_hidden_states", "output_past",
    "output_scores", "pad_token_id", "predict_special_tokens", "prefix", "pretraining_tp",
    "problem_type", "remove_invalid_values", "reorder_and_upcast_attn", "repetition_penalty",
    "resid_pdrop", "return_dict", "return_dict_in_generate", "sep_token_id", "summary_activation",
    "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj",
    "suppress_tokens", "task_specific_params", "temperature", "tf_legacy_loss",
    "tie_encoder_decoder", "tokenizer_class", "tokenizer_model_max_length",
    "tokenizer_padding_side", "top_k", "top_p", "torch_dtype", "torchscript",
    "transformers.js_config", "transformers_version", "typical_p", "unsloth_fixed",
    "unsloth_version", "use_bfloat16", "use_cache", "xla_device",
};
/* clang-format on */

int config_check_rest(const Config *config, bool whole_file) {
    const cJSON *item;
    const size_t count = whole_file ? sizeof harmless / sizeof *harmless : 0;
    cJSON_ArrayForEach(item, config->root) {
        bool known = cJSON_IsNull(item);
        for (int i = 0; i < config->count && !known; i++)
            known = strcmp(config->read[i], item->string) == 0;
        for (size_t i = 0; i < count && !known; i++) known = !strcmp(harmless[i], item->string);
        /* An export replaces it by the name of its own type. */
        if (strstr(item->string, "dtype")) known &= cJSON_IsNull(item) || cJSON_IsString(item);
        if (known) continue;
        char *text = cJSON_PrintUnformatted(item);
        error_set("%s: %s%.60s is %.60s; this setting is not supported", config->path,
                  config->inside, item->string, text ? text : "");
        cJSON_free(text);
        return -1;
    }
    return 0;
}
