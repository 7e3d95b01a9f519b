/* The files of a model's directory: which tensor an index means, tensors and settings that we do
 * not support, how a directory is found again, and what an export leaves there. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../data/safetensors.h"
#include "../../experiments/convert/convert.h"
#include "../../ref/base/error.h"
#include "cli.h"

#define TINY "llama:layers=1,width=8,heads=2,ffn=8,context=8,vocabulary=256"
#define STILL "--data text --context 8 --lr 0 --steps 1 --limit 8 --batch 2 --quiet "
#define DERIVED "model.layers.0.self_attn.rotary_emb.inv_freq"
#define INDEX "/model.safetensors.index.json"

/* Writes the tiny model into the directory `tiny`. */
static void make_tiny(void) {
    run(0, "train --model " TINY " " STILL "--out tiny-run");
    run(0, "export tiny-run --out tiny --quiet");
}

/* Writes `dir`/`name` with those tensors of `tiny` that `chosen` returns a factor for, times this;
 * and, unless extra is NULL, a tensor of this name and 8 numbers. */
static void write_part(const char *dir, const char *name, float (*chosen)(const char *),
                       const char *extra) {
    enum { MOST = 32, NUMBERS = 4096 };
    static float numbers[NUMBERS];
    Safetensors whole;
    SafetensorsWriter writer;
    SafeTensor list[MOST];
    char path[256];
    int count = 0;
    if (!CHECK(safetensors_open(&whole, scratch_path("tiny/model.safetensors")) == 0, "%s",
               error_message()))
        return;
    for (int i = 0; i < whole.tensors; i++)
        if (chosen(whole.tensor[i].name) != 0) list[count++] = whole.tensor[i];
    const int kept = count;
    if (extra) list[count++] = (SafeTensor){.name = extra, .rank = 1, .dim = {8}, .count = 8};
    mkdir(scratch_path(dir), 0777);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int failed = safetensors_create(&writer, scratch_path(path), NUMBER_F32, list, count);
    for (int i = 0; i < count && !failed; i++) {
        if (i < kept) failed = safetensors_read(&whole, &list[i], numbers);
        for (size_t j = 0; i < kept && j < list[i].count; j++) numbers[j] *= chosen(list[i].name);
        failed = failed || safetensors_append(&writer, numbers, list[i].count);
    }
    CHECK(!failed && safetensors_commit(&writer) == 0, "%s", error_message());
    safetensors_close(&whole);
    snprintf(path, sizeof path, "%s/config.json", dir);
    copy_file(path, "tiny/config.json");
}

static float all(const char *name) { return *name ? 1 : 0; }
static float norm_is_old(const char *name) { return strcmp(name, "model.norm.weight") ? 1 : 50; }
static float only_norm(const char *name) { return strcmp(name, "model.norm.weight") ? 0 : 1; }
static float none(const char *name) { return *name ? 0 : 1; }
static float no_embedding(const char *name) { return !strstr(name, "embed_tokens"); }

/* Writes an index that puts model.norm.weight into the second file, all others into the first; and,
 * unless extra is NULL, a tensor of this name into model-2.safetensors. */
static void write_index(const char *dir, const char *second, const char *extra) {
    char text[4096], path[128];
    Safetensors whole;
    int used = sprintf(text, "{\"weight_map\": {");
    if (!CHECK(safetensors_open(&whole, scratch_path("tiny/model.safetensors")) == 0, "%s",
               error_message()))
        return;
    for (int i = 0; i < whole.tensors; i++) {
        const char *name = whole.tensor[i].name;
        used += sprintf(text + used, "%s\"%s\": \"%s\"", i ? ", " : "", name,
                        only_norm(name) > 0 ? second : "model-1.safetensors");
    }
    if (extra) used += sprintf(text + used, ", \"%s\": \"model-2.safetensors\"", extra);
    sprintf(text + used, "}}");
    safetensors_close(&whole);
    snprintf(path, sizeof path, "%s" INDEX, dir);
    scratch_text(path, text);
}

static char *eval_of(const char *init) {
    const char *line = "eval --init %s --data text --context 8 --limit 8";
    return strstr(run(0, line, init)->out, "): loss");
}

/* The index says which of two tensors of the same name is meant; the other one is old. */
static void index_chooses_the_file(void) {
    char loss[64];
    snprintf(loss, sizeof loss, "%s", eval_of("tiny"));
    write_part("stale", "model-1.safetensors", norm_is_old, NULL);
    write_part("stale", "model-2.safetensors", only_norm, NULL);
    write_index("stale", "model-2.safetensors", NULL);
    CHECK(strcmp(eval_of("stale"), loss) == 0, "%s, not %s", eval_of("stale"), loss);
    write_index("stale", "model-1.safetensors", NULL);
    CHECK(strcmp(eval_of("stale"), loss) != 0, "the old one has the same loss");
    write_part("lost", "model-1.safetensors", no_embedding, NULL);
    write_index("lost", "model-1.safetensors", NULL);
    check_error(run(1, "train --init lost " STILL "--out never-1"),
                "no tensor model.embed_tokens.weight, which the weight_map");
}

/* A tensor that the model would ignore is refused; one that follows from the settings is not. */
static void unknown_tensors_are_refused(void) {
    static const char *const wrong[] = {"model.layers.0.self_attn.q_proj.bias",
                                        "model.layers.1.input_layernorm.weight", "score.weight"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_part("extra", "model.safetensors", all, wrong[i]);
        check_error(run(1, "train --init extra " STILL "--out never-2"), wrong[i]);
    }
    write_part("extra", "model.safetensors", all, DERIVED);
    eval_of("extra");
}

/* Replaces a text in the config.json of a copy of `tiny`. */
static void write_config(const char *dir, const char *from, const char *to) {
    size_t count;
    char changed[4096], path[64];
    char *text = read_bytes("tiny/config.json", &count), *place = strstr(text, from);
    if (CHECK(place, "no %s in %s", from, text)) {
        snprintf(changed, sizeof changed, "%.*s%s%s", (int)(place - text), text, to,
                 place + strlen(from));
        snprintf(path, sizeof path, "%s/config.json", dir);
        scratch_text(path, changed);
    }
    free(text);
}

/* A tied head may be stored as well, if it is the embedding. */
static void tied_head_is_the_embedding(void) {
    write_part("tied", "model.safetensors", all, NULL);
    write_config("tied", "\"tie_word_embeddings\":\tfalse", "\"tie_word_embeddings\": true");
    check_error(run(1, "train --init tied " STILL "--out never-3"),
                "lm_head.weight differs from model.embed_tokens.weight");
    run(0, "train --model " TINY ",tied=1 " STILL "--out tied-run");
    run(0, "export tied-run --out really-tied --quiet");
    eval_of("really-tied");
}

static const struct {
    const char *from, *to, *says;
} configs[] = {
    {"{", "{\"num_local_experts\": 8, ", "num_local_experts is 8; this setting is not supported"},
    {"{", "{\"quantization_config\": {}, ",
     "config.json: quantization_config: the weights are quantised; get the original, unquantised "
     "model"},
    {"{", "{\"quantization\": {\"bits\": 4}, ",
     "config.json: quantization: the weights are quantised"},
    {"{", "{\"compression_config\": {}, ",
     "config.json: compression_config: the weights are quantised"},
    {"{", "{\"rope_scaling\": \"linear\", ", "rope_scaling is \"linear\"; only an object"},
    {"\"rope_parameters\":\t{", "\"rope_parameters\": \"x\", \"ignored\": {", "is \"x\"; only"},
    {"\"rope_type\":", "\"full_attention\": {\"rope_type\": \"default\"}, \"rope_type\":",
     "rope_parameters.full_attention is {"},
    {"\"rope_type\":", "\"beta_fast\": 32, \"rope_type\":", "rope_parameters.beta_fast is 32"},
    {"{", "{\"tie_word_embeddings\": true, ", "has \"tie_word_embeddings\" twice"},
    {"\"rms_norm_eps\"", "\"eps\": [\n-Infinity], \"rms_norm_eps\"", "not JSON: -Infinity"},
    {"\"rms_norm_eps\"", "\"eps\": NaN, \"rms_norm_eps\"", "not JSON: NaN"},
    {"{", "[", "line 2: not JSON"},
    {"{", "{\"pruned_heads\": {\"0\": [1]}, ", "pruned_heads is {\"0\":[1]}; only {}"},
    {"\"tie_word_embeddings\":\tfalse", "\"tie_word_embeddings\": 0", "must be true or false"},
};

/* An unknown setting is refused, since it may change what the model computes. */
static void unknown_settings_are_refused(void) {
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        write_part("unknown", "model.safetensors", all, NULL);
        write_config("unknown", configs[i].from, configs[i].to);
        check_error(run(2, "train --init unknown " STILL "--out never-4"), configs[i].says);
    }
    write_config("unknown", "{",
                 "{\"use_cache\": true, \"unheard_of\": null, \"quantization_config\": null, "
                 "\"rope_scaling\": {}, ");
    eval_of("unknown");
}

/* Other formats that people have in place of a model's directory are named, with the command to
 * type. */
static void foreign_formats_are_named(void) {
    static const struct {
        const char *init, *file, *error;
    } rows[] = {
        {"adapter", "adapter_config.json",
         "adapter: has a LoRA adapter, which belongs into the weights of its model; type: pip "
         "install torch transformers peft, then python3 -c \"from peft import"},
        {"tiny", "adapter_config.json", "tiny: has a LoRA adapter, which belongs into"},
        {"pickled", "pytorch_model-00001-of-00002.bin",
         "pickled: has its weights in pytorch_model.bin; type: pip install torch transformers, "
         "then"},
        {"pickled/pytorch_model-00001-of-00002.bin", "",
         "pickled/pytorch_model-00001-of-00002.bin: has its weights in pytorch_model.bin; type: "},
        {"gguf", "model.Q4_K_M.gguf",
         "gguf: has its weights in GGUF; get the model that they were made from or, for a LLaMA"},
        {"gguf/model.Q4_K_M.gguf", "",
         "gguf/model.Q4_K_M.gguf: has its weights in GGUF; get the model "},
        {"meta", "consolidated.00.pth", "meta: is in Meta's format; get the model in that"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", rows[i].init, rows[i].file);
        if (*rows[i].file) scratch_text(path, "{}");
        check_error(run(1, "eval --init %s --data x.tokens", rows[i].init), rows[i].error);
    }
    CHECK(remove(scratch_path("tiny/adapter_config.json")) == 0, "cannot remove");
}

/* A path that is too long is an error, wherever it is composed. */
static void long_paths_are_refused(void) {
    char dir[480], path[1100], spec[OPTION_TEXT];
    memset(dir, 'd', sizeof dir);
    for (int length = 460; length > 60; length -= 100) {
        dir[length] = 0;
        check_error(run(2, "train --init %s " STILL, dir), length > 255 ? "too long" : "No such");
    }
    memset(path, '/', sizeof path);
    for (size_t end = PATH_BYTES - 40; end < PATH_BYTES + 4; end++) {
        Weights weights;
        path[end] = 0;
        memcpy(path, scratch_path("stale"), strlen(scratch_path("stale")));
        const int opened = weights_open(&weights, path);
        CHECK(opened == 0 || strstr(error_message(), "longer than"), "%s", error_message());
        CHECK((opened == 0) == (end + strlen(INDEX) < PATH_BYTES), "%d with %zu bytes", opened,
              end);
        weights_close(&weights);
        CHECK((convert_spec(spec, path, 0) == 0) == (end + strlen("/config.json") < PATH_BYTES),
              "%zu bytes: %s", end, error_message());
        path[end] = '/';
    }
}

/* Runs bcd in a subdirectory and CHECKs its status. Returns what it prints, for the caller to
 * free. */
static char *run_in(const char *dir, int status, const char *line) {
    char command[2048];
    size_t count;
    snprintf(command, sizeof command, "cd '%s' && '%s' %s >printed 2>&1", scratch_path(dir),
             BCD_PROGRAM, line);
    const int ended = system(command);
    snprintf(command, sizeof command, "%s/printed", dir);
    char *printed = read_bytes(command, &count);
    CHECK(WEXITSTATUS(ended) == status, "%s: status %d: %s", line, WEXITSTATUS(ended), printed);
    return printed;
}

/* An export and a resume from another directory find the model that a training began with, with its
 * settings and its tokenizer.  If it is gone, an export says so. */
static void start_is_found_again(void) {
    size_t count;
    write_part("from/model", "model.safetensors", all, NULL);
    write_config("from/model", "{", "{\"use_cache\": true, \"initializer_range\": 1.0, ");
    scratch_text("from/model/additional_chat_templates/tool_use.jinja", "");
    scratch_text("from/model/tokenizer_config.json", "{}");
    free(run_in("from", 0,
                "train --init model --data text --context 8 --lr 0 --steps 1 --limit 8 "
                "--batch 2 --schedule constant --quiet --out run"));
    scratch_text("other/place/x", "");
    free(run_in("other/place", 0, "train --resume ../../from/run --steps 2 --quiet"));
    char *printed = run_in("other/place", 0, "export ../../from/run --out exported");
    CHECK(strstr(printed, "model.safetensors, tokenizer_config.json, additional_chat_templates\n"),
          "%s", printed);
    CHECK(
        file_exists(scratch_path("other/place/exported/additional_chat_templates/tool_use.jinja")),
        "no template");
    free(printed);
    char *config = read_bytes("other/place/exported/config.json", &count);
    CHECK(strstr(config, "use_cache") && strstr(config, "\"initializer_range\": 1.0,"), "%s",
          config);
    free(config);
    CHECK(rename(scratch_path("from/model"), scratch_path("moved")) == 0, "cannot rename");
    printed = run_in("from", 1, "export run --out exported");
    CHECK(strstr(printed, "the run began with the model there, which is gone") &&
              !file_exists(scratch_path("from/exported")),
          "%s", printed);
    free(printed);
    free(run_in("from", 0, "export run --out exported --init ../moved"));
    CHECK(file_exists(scratch_path("from/exported/tokenizer_config.json")), "no tokenizer");
}

/* An export refuses to leave old files that a reader would take for a part of the exported
 * model. */
static void stale_files_are_refused(void) {
    static const char *const names[] = {"model-00001-of-00002.safetensors",
                                        "model.safetensors.index.json", "pytorch_model.bin",
                                        "adapter_model.safetensors", "tokenizer.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[64];
        snprintf(path, sizeof path, "old%zu/%s", i, names[i]);
        scratch_text(path, "{}");
        check_error(run(1, "export tiny-run --out old%zu", i), names[i]);
        snprintf(path, sizeof path, "old%zu/model.safetensors", i);
        CHECK(!file_exists(scratch_path(path)), "%s was written", path);
    }
    scratch_text("old/README.md", "");
    run(0, "export tiny-run --out old --quiet");
    run(0, "export tiny-run --out old --quiet");
}

/* With --precision bf16 the file is half as large, says so, and is read with rounded numbers. */
static void bf16_is_half_as_large(void) {
    Safetensors full, half;
    float x[64], y[64];
    size_t count;
    const Printed *printed = run(0, "export tiny-run --out half --precision bf16");
    CHECK(strstr(printed->out, "rounded to bf16"), "%s", printed->out);
    char *config = read_bytes("half/config.json", &count);
    CHECK(strstr(config, "\"bfloat16\""), "%s", config);
    free(config);
    if (!CHECK(safetensors_open(&full, scratch_path("tiny/model.safetensors")) == 0 &&
                   safetensors_open(&half, scratch_path("half/model.safetensors")) == 0,
               "%s", error_message()))
        return;
    const char *name = "model.layers.0.self_attn.o_proj.weight";
    const SafeTensor *a = safetensors_find(&full, name), *b = safetensors_find(&half, name);
    CHECK(b->kind == NUMBER_BF16 && a->count == 64, "another kind");
    CHECK(!safetensors_read(&full, a, x) && !safetensors_read(&half, b, y), "%s", error_message());
    for (int i = 0; i < 64; i++)
        CHECK(y[i] != 0 && !(fabsf(y[i] - x[i]) > 0x1p-8f * fabsf(x[i])), "%g, not %g", y[i], x[i]);
    safetensors_close(&full);
    safetensors_close(&half);
    eval_of("half");
    check_error(run(2, "export tiny-run --out never --precision tf32"),
                "it takes auto, fp32 or bf16");
}

/* An export has the numbers of the model that the training began with, unless others are asked
 * for. */
static void numbers_are_those_of_the_start(void) {
    static const struct {
        const char *init, *flags;
        NumberKind kind;
    } rows[] = {{"half", "", NUMBER_BF16},
                {"half", " --precision fp32", NUMBER_F32},
                {"tiny", "", NUMBER_F32},
                {"mixed", "", NUMBER_F32},
                {"derived", "", NUMBER_BF16}};
    run(0, "export tiny-run --out mixed --precision bf16 --quiet");
    write_part("mixed", "model-1.safetensors", norm_is_old, NULL);
    CHECK(rename(scratch_path("mixed/model.safetensors"),
                 scratch_path("mixed/model-2.safetensors")) == 0,
          "cannot rename");
    write_index("mixed", "model-2.safetensors", NULL);
    /* Older versions of transformers stored what follows from the settings in other numbers. */
    write_part("derived", "model-2.safetensors", none, DERIVED);
    copy_file("derived/model-1.safetensors", "half/model.safetensors");
    write_index("derived", "model-1.safetensors", DERIVED);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Safetensors file;
        char path[64];
        run(0, "train --init %s " STILL "--out numbers%zu", rows[i].init, i);
        const Printed *printed = run(0, "export numbers%zu --out same%zu%s", i, i, rows[i].flags);
        const bool rounded = strstr(printed->out, "rounded to bf16");
        CHECK(rounded == (rows[i].kind == NUMBER_BF16), "%s", printed->out);
        snprintf(path, sizeof path, "same%zu/model.safetensors", i);
        if (!CHECK(safetensors_open(&file, scratch_path(path)) == 0, "%s", error_message()))
            continue;
        for (int t = 0; t < file.tensors; t++)
            CHECK(file.tensor[t].kind == rows[i].kind, "row %zu: %s is of kind %d", i,
                  file.tensor[t].name, (int)file.tensor[t].kind);
        safetensors_close(&file);
    }
}

/* A model trained from scratch has no end token, so the export must not have one that transformers
 * would take from its family's default. */
static void no_end_token_is_invented(void) {
    size_t count;
    char *config = read_bytes("tiny/config.json", &count);
    CHECK(strstr(config, "\"eos_token_id\":\tnull"), "%s", config);
    free(config);
}

void test_convert_files(void) {
    make_tiny();
    RUN(index_chooses_the_file);
    RUN(unknown_tensors_are_refused);
    RUN(tied_head_is_the_embedding);
    RUN(unknown_settings_are_refused);
    RUN(foreign_formats_are_named);
    RUN(long_paths_are_refused);
    RUN(start_is_found_again);
    RUN(stale_files_are_refused);
    RUN(bf16_is_half_as_large);
    RUN(numbers_are_those_of_the_start);
    RUN(no_end_token_is_invented);
}
