/* Where the transformers library is installed, it reads what bcd export writes, and computes the
 * same logits and text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../experiments/convert/convert.h"
#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "cli.h"

#define FIXTURES BCD_SOURCE_DIR "/tests/fixtures/"

static const char *const names[] = {"gpt2",   "llama",       "grouped", "mistral",
                                    "biased", "sliding",     "qwen2",   "qwen2tied",
                                    "qwen3",  "qwen3biased", "smollm3", "olmo2"};

static void opens_there(const void *row) {
    const char *name = row;
    static int missing = -1;
    char text[4096], line[512];
    if (missing < 0) missing = run_python("-c 'import transformers, torch, h5py'", text);
    if (missing) SKIP("no python with transformers, torch and h5py; PYTHON=... names another one");
    run(0,
        "train --init " FIXTURES
        "pretrained/%s --data text --context 10 --limit 8 --batch 2 --steps 0 --quiet "
        "--out opened-%s",
        name, name);
    run(0, "export opened-%s --out there-%s", name, name);
    snprintf(line, sizeof line, FIXTURES "pretrained.py check %s there-%s", name, name);
    CHECK(run_python(line, text) == 0, "%s", text);
}

/* Without torch, transformers still takes the config.json that we write of a model for that which
 * we read. */
static void configs_are_theirs(void) {
    static const char code[] =
        "-c 'import sys, transformers\n"
        "keys = \"architectures\", \"model_type\", \"num_key_value_heads\", \"rope_parameters\", "
        "\"rope_theta\", \"tie_word_embeddings\"\n"
        "read = transformers.AutoConfig.from_pretrained\n"
        "for name in sys.argv[2:]:\n"
        "    theirs, ours = read(sys.argv[1] + name), read(\"config-\" + name)\n"
        "    for key in keys:\n"
        "        a, b = (getattr(config, key, None) for config in (theirs, ours))\n"
        "        assert a == b, (name, key, a, b)' " FIXTURES "pretrained/";
    char text[4096], line[2048], spec[OPTION_TEXT];
    if (run_python("-c 'import transformers'", text))
        SKIP("no python with transformers; PYTHON=... names another one");
    snprintf(line, sizeof line, "%s", code);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const Text file = text_of("config-%s/config.json", names[i]);
        scratch_text(file.text, "");
        const int failed = convert_spec(spec, text_of(FIXTURES "pretrained/%s", names[i]).text, 0);
        Model *model = failed ? NULL : model_create(spec);
        CHECK(model && convert_write_config(scratch_path(file.text), model, NUMBER_F32, NULL) == 0,
              "%s", error_message());
        model_free(model);
        snprintf(line + strlen(line), sizeof line - strlen(line), " %s", names[i]);
    }
    CHECK(run_python(line, text) == 0, "%s", text);
}

/* The example of finetune.md: its model and tokenizer in transformers' pipeline write what bcd
 * sample writes, when both take the likeliest token. */
static void case_pipeline(void) {
    char text[4096], line[2048];
    if (run_python("-c 'import transformers, torch, tokenizers'", text))
        SKIP("no python with transformers, torch and tokenizers; PYTHON=... names another one");
    snprintf(line, sizeof line,
             "cd '%s' && STEPS=20 BCD='%s' PYTHON=\"${PYTHON:-/usr/bin/python3}\" " BCD_SOURCE_DIR
             "/experiments/finetune_example " BCD_SOURCE_DIR "/README.md example >/dev/null",
             scratch_path("."), BCD_PROGRAM);
    if (!CHECK(system(line) == 0, "finetune_example failed")) return;
    const Printed *printed = run(0,
                                 "sample --init example/exported --context 64 --prompt The "
                                 "--tokens 12 --temperature 0");
    run_python(
        "-c 'import transformers; open(\"example/text\", \"w\").write(transformers.pipeline("
        "\"text-generation\", model=\"example/exported\")(\"The\", max_new_tokens=12, "
        "do_sample=False)[0][\"generated_text\"] + \"\\n\")'",
        text);
    size_t count;
    char *written = read_bytes("example/text", &count);
    CHECK(count > 4 && strcmp(written, printed->out) == 0, "pipeline: %s\nsample: %s\n%s", written,
          printed->out, text);
    free(written);
}

void test_transformers(void) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        RUN_ROW(names[i], opens_there, names[i]);
    RUN(configs_are_theirs);
    RUN(case_pipeline);
}
