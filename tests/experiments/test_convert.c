/* Models in the format of the transformers library are read and written, and ours compute the
 * logits that it computes from them. */
#include <hdf5.h>
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

static const char *const names[] = {"gpt2",   "llama",       "grouped", "mistral",
                                    "biased", "sliding",     "qwen2",   "qwen2tied",
                                    "qwen3",  "qwen3biased", "smollm3", "olmo2"};

#define PRETRAINED BCD_SOURCE_DIR "/tests/fixtures/pretrained"
/* The flags of a training that changes no parameter, since its rate is 0. */
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
        error = worse(error, fabs(logits[i] - want[i]));
    /* float_error is the error of PyTorch's logits in float32, which depends on its order of sums;
     * ours is another. */
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

/* A shorter context computes the beginning of what a longer one computes. */
static void shorter_contexts_are_beginnings(void) {
    static const char line[] = "gradients --init " PRETRAINED "/llama --batch " PRETRAINED
                               "/llama/logits.h5 --mode eval --out short.h5 --context %d";
    size_t count, cut_count, n;
    for (int t = 3; t > 0; t -= 2) {
        double *whole = read_logits(scratch_path("first-llama.h5"), &count, NULL);
        run(0, line, t);
        double *cut = read_logits(scratch_path("short.h5"), &cut_count, NULL);
        H5File file;
        size_t size[H5_RANK] = {1, 1, 1};
        if (!CHECK(whole && cut && h5_open(&file, scratch_path("first-llama.h5")) == 0 &&
                       h5_size(&file, "/logits", size) == 3,
                   "%s", error_message()))
            return;
        h5_close(&file);
        const size_t row = size[1] * size[2], cut_row = (size_t)t * size[2];
        CHECK(cut_count == size[0] * cut_row, "%zu logits", cut_count);
        for (n = 0; n < size[0] && cut_count == size[0] * cut_row; n++)
            CHECK(!memcmp(cut + n * cut_row, whole + n * row, cut_row * sizeof *cut), "sample %zu",
                  n);
        free(whole);
        free(cut);
    }
    check_error(run(1, line, 1000), "--context 1000: ");
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
static void evaluates_and_exports_without_a_run(const void *data) {
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
    {"gpt2", "\"n_layer\"", "\"x\": 2", "n_layer is missing"},
    {"gpt2", "\"n_positions\"", "\"n_positions\": 9", "--context 10"},
    {"llama", "\"num_key_value_heads\"", "\"num_key_value_heads\": 2",
     "3 heads are not a multiple of 2 groups"},
    {"llama", "\"num_key_value_heads\"", "\"num_key_value_heads\": 0",
     "num_key_value_heads must be a whole number"},
    {"llama", "\"rms_norm_eps\"", "\"rms_norm_eps\": \"1e-6\"", "must be a number from"},
    {"llama", "\"rope_theta\"", "\"rope_theta\": 0.0",
     "config.json: model: rope_base=0 is not in 1.."},
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
    {"llama", "\"attention_bias\"", "\"attention_bias\": 1",
     "attention_bias must be true or false"},
    {"qwen2", "\"use_sliding_window\"", "\"use_sliding_window\": true",
     "use_sliding_window is true"},
    {"smollm3", "\"full_attention\"", "\"sliding_attention\"", "only full_attention is supported"},
    {"smollm3", "\"no_rope_layers\": [", "\"no_rope_layers\": [1, 1,",
     "only one number for each layer"},
    {"smollm3", "\"no_rope_layers\": [", "\"no_rope_layers\": [0, 1], \"x\": [",
     "no_rope_layers is [0,1]; only one number for each layer, every n-th 0,"},
    {"smollm3", "\"no_rope_layers\": [", "\"no_rope_layers\": [1, null], \"x\": [",
     "no_rope_layers is [1,null]; only one number for each layer, every n-th 0,"},
    {"smollm3", "\"no_rope_layers\": [", "\"no_rope_layers\": [true, false], \"x\": [",
     "no_rope_layers is [true,false]; only"},
    {"qwen3", "\"model_type\"", "\"model_type\": \"gemma3_text\"",
     "gemma3_text; supported are gpt2, llama, mistral, qwen2, qwen3, smollm3 and olmo2"},
    {"llama", "\"mlp_bias\"", "\"mlp_bias\": true", "mlp_bias is true"},
    {"mistral", "\"sliding_window\"", "\"sliding_window\": 2.5",
     "sliding_window must be a whole number from 1 to 16777216"},
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

/* Of what the file does not have, the model would read what is in memory. */
static void a_batch_of_shorter_sequences_is_refused(void) {
    check_error(run(1, "gradients --init " PRETRAINED "/grouped --batch " PRETRAINED
                       "/grouped/logits.h5 --context 11 --out never.h5"),
                "/grouped/logits.h5 has 10 tokens in a sample");
}

/* A file may state sizes that no memory holds. */
static void a_batch_of_endless_sequences_is_refused(void) {
    const hsize_t sizes[][2] = {{1, (hsize_t)1 << 40}, {2, (hsize_t)1 << 25}};
    for (int i = 0; i < 2; i++) {
        hid_t file = H5Fcreate(scratch_path("batch.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        hid_t space = H5Screate_simple(2, sizes[i], NULL);
        for (int n = 0; n < 2; n++)
            H5Dclose(H5Dcreate2(file, n ? "/tokens" : "/targets", H5T_NATIVE_INT64, space,
                                H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        H5Sclose(space);
        H5Fclose(file);
        check_error(run(1, "gradients --init " PRETRAINED
                           "/gpt2 --context 4 --batch batch.h5 --out never.h5"),
                    "no memory for");
    }
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
    make_changed("wider", "gpt2", "\"n_embd\"", "\"n_embd\": 24");
    copy_file("wider/model.safetensors", "exported-gpt2/model.safetensors");
    check_error(run(1, "train --init wider " STILL "--out never5"),
                "has the shape 256 x 12; it should be 256 x 24, for embedding.token.weight");
    make_changed("short", "gpt2", "\"n_positions\"", "\"n_positions\": 12");
    copy_file("short/model.safetensors", "exported-gpt2/model.safetensors");
    check_error(run(1, "train --init short " STILL "--out never9"),
                "transformer.wpe.weight has 13 rows, config.json says 12 positions");
    make_changed("narrow", "gpt2", "\"n_embd\"", "\"n_embd\": 6");
    scratch_text("narrow/model.safetensors", "version https://git-lfs.github.com/spec/v1\n");
    check_error(run(1, "train --init narrow " STILL "--out never9"), "type: git lfs pull");
    check_error(run(2, "train --init exported-gpt2 --model resnet8 --data synthetic"),
                "--init DIR is for models that transformers has");
    run(0,
        "train --model resnet:depth=8,width=2 --data synthetic --limit 32 --batch 4 --steps 1 "
        "--quiet --out images");
    check_error(run(1, "export images --out never6"),
                "export: transformers has no model like resnet");
    check_error(run(2, "export images"), "bcd export needs --out DIR");
}

void test_convert(void) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        RUN_ROW(names[i], logits_are_theirs, &names[i]);
    RUN(shorter_contexts_are_beginnings);
    RUN_ROW("exported: gpt2", exported_is_theirs, "gpt2");
    RUN_ROW("exported: grouped", exported_is_theirs, "grouped");
    RUN_ROW("without a run: gpt2", evaluates_and_exports_without_a_run, "gpt2");
    RUN_ROW("without a run: mistral", evaluates_and_exports_without_a_run, "mistral");
    RUN_ROW("starts again: llama", starts_again_from_the_model, "llama");
    RUN_ROW("starts again: mistral", starts_again_from_the_model, "mistral");
    RUN_ROW("starts again: qwen3biased", starts_again_from_the_model, "qwen3biased");
    RUN_ROW("starts again: olmo2", starts_again_from_the_model, "olmo2");
    RUN(other_models_are_refused);
    RUN(a_failed_start_leaves_no_directory);
    RUN(another_vocabulary_is_refused);
    RUN(a_batch_of_shorter_sequences_is_refused);
    RUN(a_batch_of_endless_sequences_is_refused);
    RUN(wrong_directories_are_refused);
}
