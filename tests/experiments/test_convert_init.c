/* What may be asked for together with a model's directory: a model of the same settings, tokens
 * that its tokenizer made, and an export that transformers loads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../data/tokens.h"
#include "../../ref/base/error.h"
#include "cli.h"

#define SIZES "layers=1,width=8,heads=2,ffn=8,vocabulary=256"
#define TINY "llama:" SIZES
#define STILL "--data words.tokens --lr 0 --steps 1 --limit 8 --batch 2 --quiet "

/* Writes the weights of a model into a directory, beside its config.json with one text replaced. */
static void make_of(const char *source, const char *dir, const char *from, const char *to) {
    size_t bytes;
    char *text = read_bytes(text_of("%s/config.json", source).text, &bytes),
         *place = strstr(text, from);
    char changed[4096];
    if (CHECK(place, "no %s in %s", from, text)) {
        snprintf(changed, sizeof changed, "%.*s%s%s", (int)(place - text), text, to,
                 place + strlen(from));
        scratch_text(text_of("%s/config.json", dir).text, changed);
    }
    free(text);
    copy_file(text_of("%s/model.safetensors", dir).text,
              text_of("%s/model.safetensors", source).text);
}

static void make_changed(const char *dir, const char *from, const char *to) {
    make_of("tiny", dir, from, to);
}

/* ---- --model --------------------------------------------------------------------------------- */

static const struct {
    const char *from, *to, *settings, *says;
} pairs[] = {
    {"{", "{", ",rope_base=500",
     "pair: config.json says llama, --model llama with rope_base=500; leave out --model"},
    {"\"rms_norm_eps\"", "\"rms_norm_eps\": 1e-06, \"_name_or_path\": \"\", \"prefix\"", "",
     "pair: config.json says llama with eps=1e-06, --model llama; leave out --model"},
    {"\"rope_type\":\t\"default\"",
     "\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1, \"high_freq_factor\": 4, "
     "\"original_max_position_embeddings\": 8",
     "",
     "pair: config.json says llama with rope_factor=8, rope_low=1, rope_high=4, rope_original=8, "
     "--model llama; "},
    {"\"model_type\":\t\"llama\"", "\"model_type\": \"granite\"", "", "model_type is granite"},
    {"\"model_type\":\t\"llama\"", "\"model_type\": \"qwen3\"", "", "config.json says qwen3"},
    {"{", "{\"unheard_of\": 1, ", "", "unheard_of is 1; this setting is not supported"},
};

/* The weights fit another model than that of config.json, too, which would compute with them what
 * they were not trained for. */
static void another_model_is_refused(void) {
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        make_changed("pair", pairs[i].from, pairs[i].to);
        check_error(run(1, "train --init pair --model " TINY ",context=8%s " STILL "--out never",
                        pairs[i].settings),
                    pairs[i].says);
    }
    make_changed("pair", "{", "{");
    scratch_text("pair/adapter_config.json", "{}");
    check_error(run(1, "train --init pair --model " TINY ",context=8 " STILL "--out never"),
                "pair: has a LoRA adapter");
    CHECK(unlink(scratch_path("pair/config.json")) == 0, "cannot remove");
    check_error(run(1, "train --init pair --model " TINY ",context=8 " STILL "--out never"),
                "pair: has a LoRA adapter");
    CHECK(!file_exists(scratch_path("never")), "a directory is left");
}

/* A context is what is trained on, and a vocabulary that is left out is that of the data. */
static void the_same_model_is_taken(void) {
    run(0, "train --init tiny --model " TINY ",context=8 " STILL "--out same");
    run(0, "train --init tiny --model " TINY ",context=4 " STILL "--out shorter");
    run(0, "train --init tiny --model " TINY ",context=16 " STILL "--out longer");
    run(0,
        "train --init tiny --model llama:layers=1,width=8,heads=2,ffn=8,groups=2,context=8 " STILL
        "--out data");
    make_changed("bare", "{", "{");
    CHECK(unlink(scratch_path("bare/config.json")) == 0, "cannot remove");
    run(0, "train --init bare --model " TINY ",context=8 " STILL "--out no-config");
}

/* A run that has a checkpoint needs the directory no more, and one that is like it does. */
static void only_a_start_is_checked(void) {
    make_changed("moves", "{", "{");
    run(0, "train --init moves " STILL "--schedule constant --out begun");
    make_changed("moves", "\"rms_norm_eps\"", "\"rms_norm_eps\": 1e-06, \"prefix\"");
    run(0, "train --resume begun --steps 2 --quiet");
    check_error(run(1, "train --like begun --quiet --out never"),
                "moves: config.json says llama with eps=1e-06, --model llama; ");
    CHECK(unlink(scratch_path("moves/config.json")) == 0, "cannot remove");
    run(0, "train --resume begun --steps 3 --quiet");
    run(0, "train --like begun --quiet --out alike");
}

/* A file of tensors names no model, but one that is in a model's directory is rarely meant so. */
static void a_file_of_a_directory_is_named(void) {
    check_error(
        run(2, "train --init tiny/model.safetensors --data words.tokens"),
        "--init tiny/model.safetensors: the model is that of the config.json beside it; give "
        "the directory: --init tiny\n");
    copy_file("alone.safetensors", "tiny/model.safetensors");
    check_error(run(2, "train --init alone.safetensors --data words.tokens"),
                "the model resnet8 reads images");
    check_error(run(2, "train --init tiny/model.safetensors --model resnet8 --data words.tokens"),
                "the model resnet8 reads images");
}

/* ---- the tokenizer --------------------------------------------------------------------------- */

/* Of a tokenizer in the older files it is only known whether it is GPT-2's, which this is not; a
 * program that names no known tokenizer may have used it. */
static void tokens_of_older_files(void) {
    static const char *const names[] = {"mine", "bytes", "gpt2", "gpt2:256", "hf:0123456789ab"};
    int numbers[100] = {0};
    make_changed("older", "{", "{");
    scratch_text("older/vocab.json", "{}");
    scratch_text("older/merges.txt", "#version: 0.2\na b\n");
    for (int i = 0; i < 5; i++) {
        TokenWriter writer;
        CHECK(tokenwriter_open(&writer, scratch_path("by.tokens"), names[i], 256, false, 0) == 0 &&
                  tokenwriter_add(&writer, numbers, 100) == 0 && tokenwriter_commit(&writer) == 0,
              "%s", error_message());
        const Printed *printed = run(i > 0, "eval --init older --data by.tokens");
        if (i > 0)
            check_error(printed,
                        text_of("by.tokens was made with the tokenizer %s; older: neither "
                                "tokenizer.json nor tokenizer.model is there; of vocab.json",
                                names[i])
                            .text);
    }
}

/* ---- bcd eval -------------------------------------------------------------------------------- */

/* Weights of 3e38 are numbers, but their products are not. */
static void a_loss_that_is_no_number_is_an_error(void) {
    make_changed("huge", "{", "{");
    size_t bytes;
    char *weights = read_bytes("huge/model.safetensors", &bytes);
    const float huge = 3e38F;
    FILE *file = fopen(scratch_path("huge/model.safetensors"), "wb");
    for (size_t i = bytes - 64 * sizeof huge; i < bytes; i += sizeof huge)
        memcpy(weights + i, &huge, sizeof huge);
    CHECK(file && fwrite(weights, 1, bytes, file) == bytes && fclose(file) == 0, "cannot write");
    free(weights);
    const Printed *printed = run(1, "eval --init huge --data words.tokens --limit 8");
    check_error(printed, "the loss on words.tokens is nan");
    CHECK(!strstr(printed->out, "loss"), "printed %s", printed->out);
}

/* ---- exports --------------------------------------------------------------------------------- */

#define ODD_SIZES ":layers=1,width=8,heads=3,head_size=4,ffn=8"
#define ODD ODD_SIZES ",context=8 "
#define PRINTED "--data words.tokens --lr 0 --steps 1 --limit 8 --batch 2 "

/* The LLaMA of transformers alone refuses a width that is no multiple of the heads, which a
 * training says before it begins.  A config.json that is there is copied. */
static void widths_that_heads_do_not_divide(void) {
    static const char says[] = "bcd export will refuse this model";
    CHECK(strstr(run(0, "train --model llama" ODD PRINTED "--out odd-llama")->out, says),
          "not said");
    check_error(run(1, "export odd-llama --out never"),
                "export: transformers needs a width that is a multiple of the heads");
    CHECK(!strstr(run(0, "train --model mistral" ODD PRINTED "--out odd-run")->out, says), "said");
    run(0, "export odd-run --out odd --quiet");
    make_of("odd", "kanana", "\"mistral\"", "\"llama\"");
    CHECK(!strstr(run(0, "train --init kanana " PRINTED "--out tuned")->out, says),
          "said of a copy");
    run(0, "export tuned --out exported --quiet");
    CHECK(file_exists(scratch_path("exported/model.safetensors")), "no export");
    CHECK(strstr(run(0, "train --init kanana --model llama" ODD_SIZES ",context=9 " PRINTED
                        "--out longer-kanana")
                     ->out,
                 says),
          "not said of one that is written anew");
}

void test_convert_init(void) {
    make_words();
    run(0, "train --model " TINY ",context=8 " STILL "--out tiny-run");
    run(0, "export tiny-run --out tiny --quiet");
    RUN(another_model_is_refused);
    RUN(the_same_model_is_taken);
    RUN(only_a_start_is_checked);
    RUN(a_file_of_a_directory_is_named);
    RUN(tokens_of_older_files);
    RUN(a_loss_that_is_no_number_is_an_error);
    RUN(widths_that_heads_do_not_divide);
}
