/* The relatives of LLaMA compute what the transformers library computes: loss, logits, gradients of
 * every parameter and the likeliest next tokens (tests/fixtures/pretrained.py), on each device that
 * is here. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../experiments/convert/convert.h"
#include "../../experiments/store/h5.h"
#include "../../experiments/train/modules.h"
#include "../../ref/blocks/models.h"
#include "cli.h"

#define PRETRAINED BCD_SOURCE_DIR "/tests/fixtures/pretrained"

static const char *const names[] = {"biased", "sliding",     "qwen2",   "qwen2tied",
                                    "qwen3",  "qwen3biased", "smollm3", "olmo2"};

/* Reads an array of numbers, for the caller to free. */
static double *read_numbers(const H5File *file, const char *name, size_t *count) {
    size_t size[H5_RANK];
    const int rank = h5_size(file, name, size);
    *count = rank < 0 ? 0 : 1;
    for (int i = 0; i < rank; i++) *count *= size[i];
    double *numbers = calloc(*count + 1, sizeof *numbers);
    CHECK(rank >= 0 && h5_read(file, name, H5_DOUBLE, numbers, rank, size) == 0, "%s: %s", name,
          error_message());
    return numbers;
}

static double allowed_error(const H5File *theirs, const char *object) {
    double float_error = 0;
    CHECK(h5_get(theirs, object, "float_error", H5_DOUBLE, &float_error) == 0, "%s",
          error_message());
    /* float_error is the error of PyTorch's numbers in float32, which depends on its order of sums;
     * ours is another. */
    return 8 * float_error;
}

static void check_close(const char *what, const double *have, const double *want, size_t count,
                        double allowed) {
    double error = 0;
    for (size_t i = 0; i < count; i++) error = worse(error, fabs(have[i] - want[i]));
    CHECK(error <= allowed, "%s: off by %g, allowed %g", what, error, allowed);
}

/* Compares our gradient of a parameter with theirs, which may consist of several tensors. */
static void check_gradient(const H5File *ours, const H5File *theirs, const Model *model, int param,
                           double allowed) {
    TheirName name;
    size_t count, part_count, at = 0;
    convert_name(&name, model, param);
    const Text path = text_of("/gradients/%s", model->param[param].name);
    double *have = read_numbers(ours, path.text, &count);
    for (int part = 0; part < name.parts; part++, at += part_count) {
        const Text their_path = text_of("/gradients/%s", name.name[part]);
        double *want = read_numbers(theirs, their_path.text, &part_count);
        if (CHECK(at + part_count <= count, "%s is longer", their_path.text))
            check_close(their_path.text, have + at, want, part_count, allowed);
        free(want);
    }
    CHECK(at == count, "%s: %zu numbers, not %zu", path.text, count, at);
    free(have);
}

static void check_numbers(const H5File *ours, const H5File *theirs, const Model *model) {
    static const char *const arrays[] = {"/logits", "/loss"};
    for (int i = 0; i < 2; i++) {
        size_t count, their_count;
        double *have = read_numbers(ours, arrays[i], &count);
        double *want = read_numbers(theirs, arrays[i], &their_count);
        if (CHECK(count == their_count, "%s: %zu numbers, not %zu", arrays[i], count, their_count))
            check_close(arrays[i], have, want, count, allowed_error(theirs, "/logits"));
        free(have);
        free(want);
    }
    for (int p = 0; p < model->params; p++)
        check_gradient(ours, theirs, model, p, allowed_error(theirs, "/gradients"));
}

static void computes_the_same(const char *name, const char *device) {
    char spec[OPTION_TEXT];
    H5File ours, theirs;
    const Text dir = text_of(PRETRAINED "/%s", name), file = text_of("%s-%s.h5", name, device);
    run(0, "gradients --init %s --batch %s/logits.h5 --out %s --device %s", dir.text, dir.text,
        file.text, device);
    Model *model = convert_spec(spec, dir.text, 10) ? NULL : model_create(spec);
    if (!CHECK(model && h5_open(&ours, scratch_path(file.text)) == 0 &&
                   h5_open(&theirs, text_of("%s/logits.h5", dir.text).text) == 0,
               "%s", error_message()))
        return;
    check_numbers(&ours, &theirs, model);
    h5_close(&ours);
    h5_close(&theirs);
    model_free(model);
}

static void on_the_processor(const void *name) { computes_the_same(name, "cpu"); }
static void in_plain_loops(const void *name) { computes_the_same(name, "plain"); }
static void by_the_kernels(const void *name) {
    if (!device_module_open("simt")) SKIP("%s", error_message());
    computes_the_same(name, "simt");
}

/* A token is a byte, so the text consists of the tokens. */
static void writes_the_same(const void *name) {
    size_t count, bytes;
    char prompt[H5_NAME], line[1 << 10];
    H5File theirs;
    const Text dir = text_of(PRETRAINED "/%s", (const char *)name);
    if (!CHECK(h5_open(&theirs, text_of("%s/logits.h5", dir.text).text) == 0 &&
                   h5_get(&theirs, "/", "prompt", H5_TEXT, prompt) == 0,
               "%s", error_message()))
        return;
    double *tokens = read_numbers(&theirs, "/generated", &count);
    h5_close(&theirs);
    run(0,
        "train --init %s --data text --context 32 --limit 8 --batch 2 --steps 0 --quiet --out "
        "writes-%s",
        dir.text, (const char *)name);
    snprintf(line, sizeof line,
             "cd '%s' && '%s' sample writes-%s --prompt '%s' --tokens %zu --temperature 0 >written",
             scratch_path("."), BCD_PROGRAM, (const char *)name, prompt, count);
    CHECK(system(line) == 0, "%s", line);
    char *written = read_bytes("written", &bytes);
    const size_t length = strlen(prompt);
    if (CHECK(bytes > length + count && memcmp(written, prompt, length) == 0, "%s", written))
        for (size_t i = 0; i < count; i++)
            CHECK((unsigned char)written[length + i] == (unsigned char)tokens[i],
                  "token %zu is %d, not %g", i, (unsigned char)written[length + i], tokens[i]);
    free(written);
    free(tokens);
}

void test_relatives(void) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        RUN_ROW(text_of("%s, on the processor", names[i]).text, on_the_processor, names[i]);
        RUN_ROW(text_of("%s, in plain loops", names[i]).text, in_plain_loops, names[i]);
        RUN_ROW(text_of("%s, by the kernels", names[i]).text, by_the_kernels, names[i]);
        RUN_ROW(text_of("%s, text", names[i]).text, writes_the_same, names[i]);
    }
}
