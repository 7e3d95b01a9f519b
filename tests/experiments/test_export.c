/* `bcd export`: what it does when something is missing, and what it replaces. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../data/tokens.h"
#include "../../ref/base/error.h"
#include "cli.h"
#include "compare.h"

/* Where the weights that a training began with are gone, or others lie in their place, the learned
 * positions beyond the trained context are missing, and the export says so. */
static void exports_what_it_has(void) {
    make_words();
    run(0, "train " GPT "--steps 0 --out begun --quiet");
    run(0, "export begun --out base --quiet");
    run(0,
        "train --init base --data words.tokens --context 4 --limit 8 --batch 2 --steps 1 --out "
        "shorter --quiet");
    CHECK(rename(scratch_path("base/model.safetensors"), scratch_path("kept.safetensors")) == 0,
          "cannot rename");
    check_error(run(1, "export shorter --out export0"), "base/model.safetensors.index.json: No");
    run(0,
        "train --model gpt:layers=2,width=16,heads=2,context=4 --data words.tokens --limit 8 "
        "--batch 2 --steps 0 --out shorter-context --quiet");
    run(0, "export shorter-context --out place --quiet");
    copy_file("base/model.safetensors", "place/model.safetensors");
    check_error(run(1, "export shorter --out export0"), "has no transformer.wpe.weight of 16 x 16");
    CHECK(!file_exists(scratch_path("export0/config.json")), "half an export is left");
    copy_file("base/model.safetensors", "kept.safetensors");
    run(0, "export shorter --out export0 --quiet");
    check_error(run(1, "export begun --out export1 --init base"),
                "--init base: the run began with no model");
    CHECK(!file_exists(scratch_path("export1")), "it has another model's settings");
    run(0, "eval --init export0 --data words.tokens --limit 4");
}

/* An export says that it replaces files, and never replaces those that the run began with. */
static void exports_with_care(void) {
    size_t before, after;
    run(0, "export begun --out careful --quiet");
    run(0,
        "train --init careful --data words.tokens --context 4 --limit 8 --batch 2 --steps 1 --out "
        "tended --quiet");
    char *old = read_bytes("careful/model.safetensors", &before);
    /* LLVM's OpenMP needs a file of 1024 bytes, so the limit is larger. */
    for (size_t room = 2048; room < before; room += before / 3) {
        check_error(program_run("export tended --out full", room), "File too large");
        CHECK(!file_exists(scratch_path("full")), "an empty directory is left");
    }
    check_error(run(1, "export tended --out tended/../careful/"),
                "--out tended/../careful/: the run began with the model there; give another name");
    char *now = read_bytes("careful/model.safetensors", &after);
    CHECK(before == after && memcmp(old, now, before) == 0, "replaced");
    free(old);
    free(now);
    CHECK(!strcmp(run(0, "export tended --out twice")->out,
                  "twice: config.json, model.safetensors\n"),
          "the first one");
    CHECK(!strcmp(run(0, "export tended --out twice")->out,
                  "twice: config.json, model.safetensors; files that were there are replaced\n"),
          "the second one");
    /* Where the config cannot be replaced, the weights of before stay. */
    CHECK(unlink(scratch_path("twice/config.json")) == 0 &&
              mkdir(scratch_path("twice/config.json"), 0700) == 0,
          "no directory");
    scratch_text("twice/model.safetensors", "old");
    check_error(run(1, "export tended --out twice --quiet"), "config.json");
    old = read_bytes("twice/model.safetensors", &before);
    CHECK(before == 3, "%zu bytes", before);
    free(old);
    CHECK(rmdir(scratch_path("twice/config.json")) == 0, "not empty");
    run(0, "export tended --out twice --quiet");
    /* An export that was interrupted is done again. */
    CHECK(rename(scratch_path("twice/model.safetensors"),
                 text_of("%s", scratch_path("twice/model.safetensors.tmp")).text) == 0,
          "cannot rename");
    run(0, "export tended --out twice --quiet");
}

/* Makes tokens for the model in `related`, by its tokenizer, which is only a name here. */
static void write_related_tokens(void) {
    char name[TOKENIZER_NAME];
    TokenWriter writer;
    int numbers[64] = {0};
    copy_file("related/config.json", "base/config.json");
    copy_file("related/model.safetensors", "base/model.safetensors");
    CHECK(tokenizer_of_model(name, scratch_path("related")) == 0 &&
              tokenwriter_open(&writer, scratch_path("related.tokens"), name, 256, false, 0) == 0 &&
              tokenwriter_add(&writer, numbers, 64) == 0 && tokenwriter_commit(&writer) == 0,
          "%s", error_message());
}

/* What a reader of the directory would take for a part of this model. */
static void leaves_nothing_of_another_model(void) {
    static const char *const files[] = {"adapter_config.json", "adapter_model.bin",
                                        "pytorch_model.bin", "generation_config.json",
                                        "model-00001-of-00002.safetensors"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const Text name = text_of("stale%zu/%s", i, files[i]);
        scratch_text(name.text, "{}");
        check_error(run(1, "export tended --out stale%d", (int)i),
                    text_of("holds %s, which is not of this model", files[i]).text);
    }
    /* Its tokenizer may be that of a relative. */
    scratch_text("related/tokenizer.json", "{}");
    write_related_tokens();
    run(0,
        "train --init related --data related.tokens --valid related.tokens --steps 1 --batch 2 "
        "--schedule constant --out learned --quiet");
    scratch_text("chatty/tokenizer.json", "{}");
    scratch_text("chatty/chat_template.jinja", "");
    check_error(run(1, "export learned --out chatty"),
                "holds chat_template.jinja, which is not of this model");
}

/* An export computes nothing, so the batch of the training needs no memory. */
static void exports_without_a_batch(void) {
    run(0,
        "train --model gpt:layers=1,width=8,heads=1,context=64 --data words.tokens --batch 4 "
        "--steps 1 --out batched --quiet");
    change_batch("batched/run.h5", 1 << 20);
    change_batch("batched/checkpoint.h5", 1 << 20);
    check_error(run(1, "eval batched"), "; a smaller batch needs less");
    run(0, "eval batched --batch 4");
    run(0, "export batched --out unbatched --quiet");
}

void test_export(void) {
    RUN(exports_what_it_has);
    RUN(exports_with_care);
    RUN(leaves_nothing_of_another_model);
    RUN(exports_without_a_batch);
}
