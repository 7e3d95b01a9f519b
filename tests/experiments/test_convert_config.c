/* config.json: those of published models are read as our presets, and those that we write as the
 * model that they were written of. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../experiments/convert/convert.h"
#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "cli.h"

/* The settings of published models' config.json that matter here. A row's name is the model's name
 * when it was published. */
typedef struct {
    const char *spec, *config;
} Published;

static const Published published[] = {
    /* That of GPT-2 medium has settings which the model of transformers does not read. */
    {"gpt2:layers=24,width=1024,heads=16",
     "{'model_type': 'gpt2', 'activation_function': 'gelu_new', 'layer_norm_epsilon': 1e-05,"
     "'n_ctx': 1024, 'n_embd': 1024, 'n_head': 16, 'n_layer': 24, 'n_positions': 1024,"
     "'n_special': 0, 'predict_special_tokens': true, 'vocab_size': 50257}"},
    {"tinyllama",
     "{'model_type': 'llama', 'hidden_act': 'silu', 'hidden_size': 2048, 'intermediate_size': 5632,"
     "'max_position_embeddings': 2048, 'num_attention_heads': 32, 'num_hidden_layers': 22,"
     "'num_key_value_heads': 4, 'rms_norm_eps': 1e-05, 'rope_scaling': null, 'rope_theta': 10000.0,"
     "'tie_word_embeddings': false, 'vocab_size': 32000, 'attention_bias': false}"},
    {"L-70B:context=4096",
     "{'model_type': 'llama', 'hidden_act': 'silu', 'hidden_size': 8192, 'intermediate_size': "
     "28672,"
     "'max_position_embeddings': 4096, 'num_attention_heads': 64, 'num_hidden_layers': 80,"
     "'num_key_value_heads': 8, 'rms_norm_eps': 1e-05, 'rope_scaling': null,"
     "'tie_word_embeddings': false, 'vocab_size': 32000}"},
    {"L-405B:context=131072",
     "{'model_type': 'llama', 'hidden_act': 'silu', 'hidden_size': 16384,"
     "'intermediate_size': 53248, 'max_position_embeddings': 131072, 'num_attention_heads': 128,"
     "'num_hidden_layers': 126, 'num_key_value_heads': 8, 'rms_norm_eps': 1e-05, 'rope_scaling':"
     "{'factor': 8.0, 'low_freq_factor': 1.0, 'high_freq_factor': 4.0,"
     "'original_max_position_embeddings': 8192, 'rope_type': 'llama3'}, 'rope_theta': 500000.0,"
     "'tie_word_embeddings': false, 'vocab_size': 128256, 'attention_bias': false,"
     "'mlp_bias': false}"},
    {"llama3-8B",
     "{'model_type': 'llama', 'hidden_act': 'silu', 'hidden_size': 4096, 'intermediate_size': "
     "14336,"
     "'max_position_embeddings': 8192, 'num_attention_heads': 32, 'num_hidden_layers': 32,"
     "'num_key_value_heads': 8, 'rms_norm_eps': 1e-05, 'rope_scaling': null,"
     "'rope_theta': 500000.0, 'tie_word_embeddings': false, 'vocab_size': 128256}"},
    {"llama3.2-1B:context=131072",
     "{'model_type': 'llama', 'head_dim': 64, 'hidden_act': 'silu', 'hidden_size': 2048,"
     "'intermediate_size': 8192, 'max_position_embeddings': 131072, 'num_attention_heads': 32,"
     "'num_hidden_layers': 16, 'num_key_value_heads': 8, 'rms_norm_eps': 1e-05, 'rope_scaling':"
     "{'factor': 32.0, 'high_freq_factor': 4.0, 'low_freq_factor': 1.0,"
     "'original_max_position_embeddings': 8192, 'rope_type': 'llama3'}, 'rope_theta': 500000.0,"
     "'tie_word_embeddings': true, 'vocab_size': 128256, 'attention_bias': false,"
     "'mlp_bias': false}"},
    {"mistral-7B:context=32768",
     "{'model_type': 'mistral', 'hidden_act': 'silu', 'hidden_size': 4096,"
     "'intermediate_size': 14336, 'max_position_embeddings': 32768, 'num_attention_heads': 32,"
     "'num_hidden_layers': 32, 'num_key_value_heads': 8, 'rms_norm_eps': 1e-05,"
     "'rope_theta': 1000000.0, 'sliding_window': null, 'tie_word_embeddings': false,"
     "'vocab_size': 32000}"},
    /* More positions than ours have are no loss, since rotary ones need no table. */
    {"llama3-8B:context=1048576,rope_base=2804339835",
     "{'model_type': 'llama', 'hidden_act': 'silu', 'hidden_size': 4096, 'intermediate_size': "
     "14336,"
     "'max_position_embeddings': 4194304, 'num_attention_heads': 32, 'num_hidden_layers': 32,"
     "'num_key_value_heads': 8, 'rms_norm_eps': 1e-05, 'rope_scaling': null,"
     "'rope_theta': 2804339835.0, 'tie_word_embeddings': false, 'vocab_size': 128256}"},
    /* null is as many as heads; without the key it would be 8. */
    {"mistral-7B:context=32768,groups=32",
     "{'model_type': 'mistral', 'hidden_act': 'silu', 'hidden_size': 4096,"
     "'intermediate_size': 14336, 'max_position_embeddings': 32768, 'num_attention_heads': 32,"
     "'num_hidden_layers': 32, 'num_key_value_heads': null, 'rms_norm_eps': 1e-05,"
     "'rope_theta': 1000000.0, 'sliding_window': null, 'tie_word_embeddings': false,"
     "'vocab_size': 32000}"},
    {"qwen2.5-0.5B",
     "{'model_type': 'qwen2', 'hidden_act': 'silu', 'hidden_size': 896, 'intermediate_size': 4864,"
     "'max_position_embeddings': 32768, 'max_window_layers': 24, 'num_attention_heads': 14,"
     "'num_hidden_layers': 24, 'num_key_value_heads': 2, 'rms_norm_eps': 1e-06,"
     "'rope_theta': 1000000.0, 'sliding_window': 32768, 'tie_word_embeddings': true,"
     "'use_mrope': false, 'use_sliding_window': false, 'vocab_size': 151936}"},
    {"qwen3-0.6B:context=40960",
     "{'model_type': 'qwen3', 'attention_bias': false, 'head_dim': 128, 'hidden_act': 'silu',"
     "'hidden_size': 1024, 'intermediate_size': 3072, 'max_position_embeddings': 40960,"
     "'max_window_layers': 28, 'num_attention_heads': 16, 'num_hidden_layers': 28,"
     "'num_key_value_heads': 8, 'rms_norm_eps': 1e-06, 'rope_scaling': null,"
     "'rope_theta': 1000000, 'sliding_window': null, 'tie_word_embeddings': true,"
     "'use_sliding_window': false, 'vocab_size': 151936}"},
    {"smollm3-3B",
     "{'model_type': 'smollm3', 'attention_bias': false, 'hidden_act': 'silu',"
     "'hidden_size': 2048, 'intermediate_size': 11008, 'max_position_embeddings': 65536,"
     "'max_window_layers': 28, 'mlp_bias': false, 'no_rope_layer_interval': 4,"
     "'num_attention_heads': 16, 'num_hidden_layers': 36, 'num_key_value_heads': 4,"
     "'pretraining_tp': 2, 'rms_norm_eps': 1e-06, 'rope_scaling': null, 'rope_theta': 5000000.0,"
     "'sliding_window': null, 'use_sliding_window': false, 'vocab_size': 128256}"},
    {"olmo2-7B",
     "{'model_type': 'olmo2', 'attention_bias': false, 'hidden_act': 'silu',"
     "'hidden_size': 4096, 'intermediate_size': 11008, 'max_position_embeddings': 4096,"
     "'num_attention_heads': 32, 'num_hidden_layers': 32, 'num_key_value_heads': 32,"
     "'rms_norm_eps': 1e-06, 'rope_scaling': null, 'rope_theta': 500000,"
     "'tie_word_embeddings': false, 'vocab_size': 100352}"},
    {"L-7B:context=16384,rope_factor=8",
     "{'model_type': 'llama', 'hidden_act': 'silu', 'hidden_size': 4096, 'intermediate_size': "
     "11008,"
     "'max_position_embeddings': 16384, 'num_attention_heads': 32, 'num_hidden_layers': 32,"
     "'rms_norm_eps': 1e-05, 'rope_scaling': {'factor': 8.0, 'type': 'linear'},"
     "'tie_word_embeddings': false, 'vocab_size': 32000}"},
};

/* What transformers takes where a config.json leaves a setting out. */
#define SIZES                                                                      \
    "'hidden_size': 64, 'intermediate_size': 8, 'max_position_embeddings': 8192, " \
    "'num_attention_heads': 32, 'num_hidden_layers': 4, 'vocab_size': 256}"
#define LEFT_OUT(family) family ":layers=4,width=64,heads=32,ffn=8,context=8192,vocabulary=256"

static const Published left_out[] = {
    {"gpt:layers=4,width=64,heads=32,context=8192,vocabulary=256,eps=1e-5",
     "{'model_type': 'gpt2', 'n_embd': 64, 'n_head': 32, 'n_layer': 4, 'n_positions': 8192,"
     "'vocab_size': 256}"},
    {LEFT_OUT("llama") ",groups=32,head_size=2,eps=1e-6,rope_base=10000,tied=0",
     "{'model_type': 'llama', " SIZES},
    {LEFT_OUT("mistral") ",groups=8,head_size=2,eps=1e-6,rope_base=10000,tied=0,window=4096",
     "{'model_type': 'mistral', " SIZES},
    {LEFT_OUT("qwen2") ",groups=32,head_size=2,eps=1e-6,rope_base=10000,tied=0",
     "{'model_type': 'qwen2', " SIZES},
    {LEFT_OUT("qwen3") ",groups=32,head_size=128,eps=1e-6,rope_base=10000,tied=0",
     "{'model_type': 'qwen3', " SIZES},
    {LEFT_OUT("smollm3") ",groups=4,head_size=2,eps=1e-6,rope_base=2000000,tied=1,rope_skip=4",
     "{'model_type': 'smollm3', " SIZES},
    {LEFT_OUT("olmo2") ",groups=32,head_size=2,eps=1e-5,rope_base=10000,tied=0",
     "{'model_type': 'olmo2', " SIZES},
};

static void published_config(const void *data) {
    const char *wanted = ((const Published *)data)->spec;
    const char *config = ((const Published *)data)->config;
    char text[1024], spec[OPTION_TEXT], dir[256];
    size_t bytes = 0;
    for (; config[bytes]; bytes++) text[bytes] = config[bytes] == '\'' ? '"' : config[bytes];
    text[bytes] = 0;
    scratch_text("published/config.json", text);
    snprintf(dir, sizeof dir, "%s", scratch_path("published"));
    if (!CHECK(convert_spec(spec, dir, 0) == 0, "%s", error_message())) return;
    Model *theirs = model_create(spec), *ours = model_create(wanted);
    if (CHECK(theirs && ours, "%s", error_message()))
        CHECK(strcmp(theirs->spec, ours->spec) == 0, "%s, not %s", theirs->spec, ours->spec);
    model_free(theirs);
    model_free(ours);
}

#define TINY(family) family ":layers=3,width=8,heads=2,ffn=8,context=8,vocabulary=256"

/* A config.json that we write is read as the same model. */
static void configs_come_back(void) {
    static const struct {
        const char *spec, *architecture;
    } rows[] = {{"tinyllama", "LlamaForCausalLM"},
                {"L-70B", "LlamaForCausalLM"},
                {"L-405B", "LlamaForCausalLM"},
                {"llama3.2-3B", "LlamaForCausalLM"},
                {"gpt2:eps=0.001", "GPT2LMHeadModel"},
                {"gpt:layers=1,width=8,heads=1,context=8,vocabulary=128256", "GPT2LMHeadModel"},
                {"L-7B:rope_factor=2.5,head_size=66", "LlamaForCausalLM"},
                {TINY("llama") ",attention_bias=1", "LlamaForCausalLM"},
                {TINY("mistral"), "MistralForCausalLM"},
                {TINY("mistral") ",window=3", "MistralForCausalLM"},
                {TINY("qwen2") ",tied=1", "Qwen2ForCausalLM"},
                {TINY("qwen3") ",head_size=4,attention_bias=1", "Qwen3ForCausalLM"},
                {TINY("smollm3"), "SmolLM3ForCausalLM"},
                {TINY("smollm3") ",rope_skip=2,tied=1", "SmolLM3ForCausalLM"},
                {TINY("smollm3") ",rope_skip=0", "SmolLM3ForCausalLM"},
                {TINY("olmo2") ",groups=1", "Olmo2ForCausalLM"}};
    char path[256], quoted[64], spec[OPTION_TEXT];
    size_t count;
    scratch_text("back/config.json", "");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Model *m = model_create(rows[i].spec), *again = NULL;
        snprintf(path, sizeof path, "%s", scratch_path("back/config.json"));
        CHECK(m && convert_write_config(path, m, NUMBER_F32, NULL) == 0, "%s", error_message());
        char *text = read_bytes("back/config.json", &count);
        /* We read n_positions; llama.cpp's converter reads n_ctx. */
        CHECK(!strstr(text, "n_positions") == !strstr(text, "n_ctx"), "%s", text);
        /* We do not read the architecture, but transformers does. */
        snprintf(quoted, sizeof quoted, "\"%s\"", rows[i].architecture);
        CHECK(strstr(text, quoted), "no %s: %s", quoted, text);
        /* Left out, transformers pads SmolLM3 with a token that this vocabulary lacks; GPT-2's own
         * tokens suit its own vocabulary. */
        CHECK(strstr(text, "pad_token_id") || strstr(rows[i].spec, "gpt2:eps"), "%s", text);
        free(text);
        *strrchr(path, '/') = 0;
        if (CHECK(m && convert_spec(spec, path, m->input.w) == 0, "%s", error_message()))
            again = model_create(spec);
        CHECK(again && strcmp(again->spec, m->spec) == 0, "%s, not %s", spec, rows[i].spec);
        model_free(again);
        model_free(m);
    }
}

/* GPT-2's tokens that begin and end a text are those of its vocabulary, also of a padded one; any
 * other has none. */
static void special_tokens_of_gpt2(void) {
    static const int vocabularies[] = {50256, 50257, 50304, 50305};
    const Text path = text_of("%s", scratch_path("special.json"));
    for (int i = 0; i < 4; i++) {
        size_t count;
        const Text spec =
            text_of("gpt:layers=1,width=8,heads=1,context=8,vocabulary=%d", vocabularies[i]);
        Model *m = model_create(spec.text);
        CHECK(m && convert_write_config(path.text, m, NUMBER_F32, NULL) == 0, "%s",
              error_message());
        char *text = read_bytes("special.json", &count);
        CHECK(!strstr(text, "eos_token_id") == (i == 1 || i == 2), "%d tokens: %s", vocabularies[i],
              text);
        free(text);
        model_free(m);
    }
}

void test_convert_config(void) {
    for (size_t i = 0; i < sizeof published / sizeof *published; i++)
        RUN_ROW(published[i].spec, published_config, &published[i]);
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        RUN_ROW(left_out[i].spec, published_config, &left_out[i]);
    RUN(configs_come_back);
    RUN(special_tokens_of_gpt2);
}
