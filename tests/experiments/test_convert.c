/* Models in the format of the transformers library are read and written, and ours compute the
 * logits that it computes from them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../data/safetensors.h"
#include "../../data/tokens.h"
#include "../../experiments/convert/convert.h"
#include "../../experiments/store/h5.h"
#include "../../ref/base/error.h"
#include "cli.h"

static const char *const names[] = {"gpt2", "llama", "grouped", "mistral"};

#define PRETRAINED BCD_SOURCE_DIR "/tests/fixtures/pretrained"
/* The flags of a training that changes no parameter. */
#define STILL "--data text --context 10 --lr 0 --steps 1 --limit 8 --batch 2 --quiet "

/* Returns the logits in a file of bcd gradients or tests/fixtures/pretrained.py, for the caller to
 * free. */
static double *read_logits(const char *path, size_t *count, double *float_error) {
    H5File file;
    size_t size[H5_RANK];
    if (!CHECK(h5_open(&file, path) == 0, "%s", error_message())) return NULL;
    int rank = h5_size(&file, "/logits", size);
    *count = rank > 0 ? 1 : 0;
    for (int i = 0; i < rank; i++) *count *= size[i];
    double *logits = malloc((*count + 1) * sizeof *logits);
    CHECK(logits && h5_read(&file, "/logits", H5_DOUBLE, logits, rank, size) == 0, "%s",
          error_message());
    if (float_error)
        CHECK(h5_get(&file, "/logits", "float_error", H5_DOUBLE, float_error) == 0, "%s",
              error_message());
    h5_close(&file);
    return logits;
}

/* Starts a training from a model, changes nothing, and computes the logits of the fixture's
 * tokens. */
static void compute_logits(const char *init, const char *name, const char *run_name) {
    run(0, "train --init %s " STILL "--out %s", init, run_name);
    run(0,
        "gradients --checkpoint %s/checkpoint.h5 --batch " PRETRAINED "/%s/logits.h5 --out %s.h5",
        run_name, name, run_name);
}

static void logits_are_theirs(const void *data) {
    const char *name = *(const char *const *)data;
    char first[32], second[32], file[256];
    size_t want_count, count, again_count;
    double float_error = 0, error = 0;
    snprintf(first, sizeof first, "first-%s", name);
    snprintf(second, sizeof second, "second-%s", name);
    snprintf(file, sizeof file, PRETRAINED "/%s", name);
    run(0, "train --init %s " STILL "--out %s", file, first);
    run(0, "gradients --init %s --batch %s/logits.h5 --out %s.h5", file, file, first);
    strcat(file, "/logits.h5");
    double *want = read_logits(file, &want_count, &float_error);
    snprintf(file, sizeof file, "%s.h5", first);
    double *logits = read_logits(scratch_path(file), &count, NULL);
    CHECK(count == want_count && count > 0, "%zu logits, not %zu", count, want_count);
    for (size_t i = 0; want && logits && i < count && count == want_count; i++)
        error = fmax(error, fabs(logits[i] - want[i]));
    /* float_error is how far PyTorch's logits in float32 are off, with its order of sums; ours is
     * another. */
    CHECK(error <= 8 * float_error, "off by %g, theirs in float32 by %g", error, float_error);

    run(0, "export %s --out exported-%s", first, name);
    snprintf(file, sizeof file, "exported-%s", name);
    compute_logits(file, name, second);
    snprintf(file, sizeof file, "%s.h5", second);
    double *again = read_logits(scratch_path(file), &again_count, NULL);
    CHECK(again && logits && again_count == count &&
              memcmp(again, logits, count * sizeof *again) == 0,
          "exported and read again, the logits are others");
    free(want);
    free(logits);
    free(again);
}

/* Parameters that are exported and loaded again are the same to the bit. */
static void exported_is_theirs(const void *data) {
    const char *name = data;
    Safetensors theirs, ours;
    char file[256], exported[64];
    snprintf(file, sizeof file, PRETRAINED "/%s/model.safetensors", name);
    snprintf(exported, sizeof exported, "exported-%s/model.safetensors", name);
    if (!CHECK(safetensors_open(&theirs, file) == 0 &&
                   safetensors_open(&ours, scratch_path(exported)) == 0,
               "%s", error_message()))
        return;
    CHECK(ours.tensors == theirs.tensors, "%d tensors, not %d", ours.tensors, theirs.tensors);
    for (int i = 0; i < theirs.tensors; i++) {
        const SafeTensor *a = &theirs.tensor[i], *b = safetensors_find(&ours, a->name);
        if (!CHECK(b, "%s is missing", a->name)) continue;
        float *x = malloc(a->count * sizeof *x), *y = malloc(a->count * sizeof *y);
        CHECK(a->count == b->count && !memcmp(a->dim, b->dim, sizeof a->dim), "%s", a->name);
        CHECK(safetensors_read(&theirs, a, x) == 0 && safetensors_read(&ours, b, y) == 0 &&
                  memcmp(x, y, a->count * sizeof *x) == 0,
              "%s: other numbers", a->name);
        free(x);
        free(y);
    }
    safetensors_close(&theirs);
    safetensors_close(&ours);
}

/* bcd eval --init gives the loss with which fine-tuning begins, and an export has the type and the
 * number of positions of the model that was loaded. */
static void goes_without_a_run(const void *data) {
    const char *name = data;
    char first[512], path[64];
    size_t bytes;
    snprintf(first, sizeof first, "%s", strstr(run(0, "eval first-%s", name)->out, "): loss"));
    const char *line = "eval --init " PRETRAINED "/%s --data text --context 10 --limit 8";
    CHECK(strstr(run(0, line, name)->out, first), "another loss than %s", first);
    snprintf(path, sizeof path, "exported-%s/config.json", name);
    char *config = read_bytes(path, &bytes);
    CHECK(strstr(config, name) && (strcmp(name, "gpt2") || strstr(config, "13,")), "%s", config);
    free(config);
}

static void tune(const char *name, const char *out, const char *flags) {
    run(0,
        "train --init " PRETRAINED
        "/%s --data text --context 10 --lr 0.01 --submodels 2 --switch-every 2 --limit 8 "
        "--batch 2 --quiet --out %s-%s %s",
        name, out, name, flags);
}

/* A training that is resumed before its first checkpoint starts from the same model, and so does
 * one over two ranks. */
static void starts_again_from_the_model(const void *name) {
    char first[32], again[32], file[64];
    snprintf(first, sizeof first, "tuned-%s", (const char *)name);
    snprintf(again, sizeof again, "again-%s", (const char *)name);
    snprintf(file, sizeof file, "%s/checkpoint.h5", again);
    tune(name, "tuned", "--steps 6");
    tune(name, "again", "--steps 0");
    unlink(scratch_path(file));
    run(0, "train --resume %s --steps 6 --quiet", again);
    check_same_checkpoint(first, again);
    snprintf(first, sizeof first, "one-%s", (const char *)name);
    snprintf(again, sizeof again, "two-%s", (const char *)name);
    tune(name, "one", "--steps 6 --accumulate 2");
    tune(name, "two", "--steps 6 --accumulate 2 --pipeline local:2");
    check_same_checkpoint(first, again);
}

/* ---- config.json --------------------------------------------------------------------------- */

/* The settings in the config.json of published models that matter here, under the names of their
 * time. */
typedef struct {
    const char *spec, *config;
} Published;

static const Published published[] = {
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
    {"L-7B:context=16384,rope_factor=8",
     "{'model_type': 'llama', 'hidden_act': 'silu', 'hidden_size': 4096, 'intermediate_size': "
     "11008,"
     "'max_position_embeddings': 16384, 'num_attention_heads': 32, 'num_hidden_layers': 32,"
     "'rms_norm_eps': 1e-05, 'rope_scaling': {'factor': 8.0, 'type': 'linear'},"
     "'tie_word_embeddings': false, 'vocab_size': 32000}"},
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

/* A config.json that we write is read as the same model. */
static void configs_come_back(void) {
    static const char *const specs[] = {"tinyllama",      "L-70B",
                                        "L-405B",         "llama3.2-3B",
                                        "gpt2:eps=0.001", "L-7B:rope_factor=2.5,head_size=66"};
    char path[256], spec[OPTION_TEXT];
    size_t count;
    scratch_text("back/config.json", "");
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        Model *m = model_create(specs[i]), *again = NULL;
        snprintf(path, sizeof path, "%s", scratch_path("back/config.json"));
        CHECK(m && convert_write_config(path, m, NUMBER_F32, NULL) == 0, "%s", error_message());
        char *text = read_bytes("back/config.json", &count);
        /* We read n_positions; llama.cpp's converter reads n_ctx. */
        CHECK(!strstr(text, "n_positions") == !strstr(text, "n_ctx"), "%s", text);
        free(text);
        *strrchr(path, '/') = 0;
        if (CHECK(m && convert_spec(spec, path, m->input.w) == 0, "%s", error_message()))
            again = model_create(spec);
        CHECK(again && strcmp(again->spec, m->spec) == 0, "%s, not %s", spec, specs[i]);
        model_free(again);
        model_free(m);
    }
}

/* ---- what is refused ----------------------------------------------------------------------- */

/* Makes a copy of a fixture in whose config.json the text from `from` to the next comma is
 * replaced by `to`. */
static void make_changed(const char *dir, const char *name, const char *from, const char *to) {
    char path[256], config[256];
    snprintf(path, sizeof path, PRETRAINED "/%s/config.json", name);
    FILE *file = fopen(path, "rb");
    static char text[4096], changed[4096];
    size_t bytes = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) fclose(file);
    text[bytes] = 0;
    char *place = strstr(text, from);
    if (!CHECK(place, "%s has no %s", path, from)) return;
    int rest = (int)strcspn(place, ",\n");
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(place - text), text, to, place + rest);
    snprintf(config, sizeof config, "%s/config.json", dir);
    scratch_text(config, changed);
}

static const struct {
    const char *name, *from, *to, *says;
} wrong[] = {
    {"gpt2", "\"model_type\"", "\"model_type\": \"bert\"", "bert; supported are gpt2, llama"},
    {"gpt2", "\"activation_function\"", "\"activation_function\": \"relu\"",
     "activation_function is \"relu\"; only gelu_new is supported"},
    {"gpt2", "\"layer_norm_epsilon\"", "\"layer_norm_epsilon\": 0",
     "layer_norm_epsilon must be a number from 1e-12 to 1"},
    {"gpt2", "\"tie_word_embeddings\"", "\"tie_word_embeddings\": false",
     "tie_word_embeddings is false"},
    {"gpt2", "\"n_inner\"", "\"n_inner\": 47", "n_inner is 47; only 4 n_embd is supported"},
    {"gpt2", "\"n_layer\"", "\"n_layer\": 2.5", "n_layer must be a whole number"},
    {"gpt2", "\"n_layer\"", "\"x\": 2", "n_layer must be a whole number"},
    {"gpt2", "\"n_positions\"", "\"n_positions\": 9", "--context 10"},
    {"llama", "\"num_key_value_heads\"", "\"num_key_value_heads\": 2",
     "3 heads are not a multiple of 2 groups"},
    {"llama", "\"num_key_value_heads\"", "\"num_key_value_heads\": 0",
     "num_key_value_heads must be a whole number"},
    {"llama", "\"rms_norm_eps\"", "\"rms_norm_eps\": \"1e-6\"", "must be a number from"},
    {"llama", "\"rope_theta\"", "\"rope_theta\": 0.0", "rope_base=0 is not in 1.."},
    {"llama", "\"rope_theta\"", "\"rope_theta\": \"10000\"", "rope_theta must be a number"},
    {"llama", "\"rope_type\"", "\"rope_type\": \"yarn\"",
     "rope_type is \"yarn\"; only default, linear or llama3 is supported"},
    {"llama", "\"rope_type\"", "\"rope_type\": \"dynamic\"", "rope_type is \"dynamic\""},
    {"llama", "\"rope_type\"", "\"rope_type\": 3", "rope_parameters.rope_type is 3"},
    {"llama", "\"rope_type\"", "\"rope_type\": \"linear\"", "factor must be a number"},
    {"llama", "\"rope_type\"", "\"partial_rotary_factor\": 0.5", "partial_rotary_factor is 0.5"},
    {"grouped", "\"factor\"", "\"factor\": 0.5", "rope_factor=0.5 is not in 1.."},
    {"grouped", "\"low_freq_factor\"", "\"low_freq_factor\": 4", "rope_low=4 is not below"},
    {"grouped", "\"low_freq_factor\"", "\"x\": 4", "low_freq_factor must be a number"},
    {"grouped", "\"head_dim\"", "\"head_dim\": 7", "even head size, not 7"},
    {"llama", "\"attention_bias\"", "\"attention_bias\": true", "attention_bias is true"},
    {"llama", "\"mlp_bias\"", "\"mlp_bias\": true", "mlp_bias is true"},
    {"mistral", "\"sliding_window\"", "\"sliding_window\": 9",
     "sliding_window is 9, which is not supported"},
    {"llama", "\"hidden_act\"", "\"hidden_act\": \"gelu\"", "hidden_act is \"gelu\""},
};

static void other_models_are_refused(void) {
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char line[512], dir[32];
        snprintf(dir, sizeof dir, "wrong-model-%zu", i);
        make_changed(dir, wrong[i].name, wrong[i].from, wrong[i].to);
        snprintf(line, sizeof line, "train --init %s " STILL "--out never", dir);
        const Printed *printed = program_run(line, 0);
        CHECK(printed->status == 2, "%s: status %d", wrong[i].to, printed->status);
        check_error(printed, wrong[i].says);
    }
}

/* A start that fails leaves no directory, unless it was there before. */
static void a_failed_start_leaves_no_directory(void) {
    make_changed("weightless", "gpt2", "\"n_layer\"", "\"n_layer\": 2");
    run(1, "train --init weightless " STILL "--out gone");
    run(1, "train --init weightless " STILL "--out full/of/gone/");
    CHECK(!file_exists(scratch_path("gone")) && !file_exists(scratch_path("full/of/gone")),
          "left behind");
    run(1, "train --init weightless " STILL "--out full/of");
    CHECK(rmdir(scratch_path("full/of")) == 0, "an empty directory that was there is gone");
}

/* Tokens of another vocabulary are refused, as their numbers mean other words.  Padding rows
 * behind a vocabulary are usual and accepted. */
static void another_vocabulary_is_refused(void) {
    make_changed("vocabulary", "gpt2", "\"vocab_size\"", "\"vocab_size\": 300");
    check_error(run(1, "train --init vocabulary " STILL "--out never10"),
                "the model has 300 tokens, but text was made with bytes, which has 256");
    TokenWriter writer;
    int numbers[100];
    for (int i = 0; i < 100; i++) numbers[i] = i;
    const char *path = scratch_path("words.tokens");
    CHECK(tokenwriter_open(&writer, path, "words", 250, false, 0) == 0 &&
              tokenwriter_add(&writer, numbers, 100) == 0 && tokenwriter_commit(&writer) == 0,
          "%s", error_message());
    run(0, "train --init " PRETRAINED
           "/gpt2 --data words.tokens --context 4 --lr 0 --steps 1 "
           "--batch 2 --quiet --out padded");
}

static void wrong_directories_are_refused(void) {
    check_error(run(2, "train --init nowhere " STILL), "nowhere/config.json");
    make_changed("no-weights", "gpt2", "\"n_layer\"", "\"n_layer\": 2");
    check_error(run(1, "train --init no-weights " STILL "--out never1"),
                "model.safetensors.index.json");
    scratch_text("no-weights/model.safetensors.index.json",
                 "{\"weight_map\": {\"a\": \"../gpt2/model.safetensors\"}}");
    check_error(run(1, "train --init no-weights " STILL "--out never2"), "not the name of a file");
    scratch_text("no-weights/model.safetensors", "12345678901234567890");
    check_error(run(1, "train --init no-weights " STILL "--out never3"), "safetensors");
    make_changed("more-layers", "gpt2", "\"n_layer\"", "\"n_layer\": 3");
    copy_file("more-layers/model.safetensors", "exported-gpt2/model.safetensors");
    check_error(run(1, "train --init more-layers " STILL "--out never4"),
                "no tensor transformer.h.2.ln_1.weight");
    make_changed("fewer-layers", "gpt2", "\"n_layer\"", "\"n_layer\": 1");
    copy_file("fewer-layers/model.safetensors", "exported-gpt2/model.safetensors");
    check_error(run(1, "train --init fewer-layers " STILL "--out never7"),
                "which the model of its config.json does not have, with 1 layer");
    scratch_text("no-files/model.safetensors.index.json", "{\"weight_map\": {}}");
    copy_file("no-files/config.json", "exported-gpt2/config.json");
    check_error(run(1, "train --init no-files " STILL "--out never8"), "weight_map names no file");
    check_error(run(1,
                    "train --init exported-gpt2 --model gpt:layers=2,width=24,heads=3,"
                    "context=10,vocabulary=256 " STILL "--out never5"),
                "which does not fit embedding.token.weight of 256 x 24");
    check_error(run(2, "train --init exported-gpt2 --model resnet8 --data synthetic"),
                "--init DIR is for GPT-2 and LLaMA models");
    run(0,
        "train --model resnet:depth=8,width=2 --data synthetic --limit 32 --batch 4 --steps 1 "
        "--quiet --out images");
    check_error(run(1, "export images --out never6"), "export: only GPT-2 and LLaMA models");
    check_error(run(2, "export images"), "bcd export needs --out DIR");
}

void test_convert(void) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        RUN_ROW(names[i], logits_are_theirs, &names[i]);
    RUN_ROW("exported: gpt2", exported_is_theirs, "gpt2");
    RUN_ROW("exported: grouped", exported_is_theirs, "grouped");
    RUN_ROW("without a run: gpt2", goes_without_a_run, "gpt2");
    RUN_ROW("without a run: mistral", goes_without_a_run, "mistral");
    for (size_t i = 0; i < sizeof published / sizeof *published; i++)
        RUN_ROW(published[i].spec, published_config, &published[i]);
    RUN(configs_come_back);
    RUN_ROW("starts again: llama", starts_again_from_the_model, "llama");
    RUN_ROW("starts again: mistral", starts_again_from_the_model, "mistral");
    RUN(other_models_are_refused);
    RUN(a_failed_start_leaves_no_directory);
    RUN(another_vocabulary_is_refused);
    RUN(wrong_directories_are_refused);
}
