/* `bcd sample`: what it prints, which tokens may be drawn, and what the model sees of a text. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../experiments/inspect/generate.h"
#include "../../experiments/train/open_model.h"
#include "../ref/tiny.h"
#include "cli.h"

static void samples(void) {
    static char first[1 << 16];
    const Printed *printed = run(0, "sample two --prompt abc --tokens 40 --seed 3");
    CHECK(strncmp(printed->out, "abc", 3) == 0 && strlen(printed->out) >= 43, "\"%s\"",
          printed->out);
    snprintf(first, sizeof first, "%s", printed->out);
    CHECK(strcmp(run(0, "sample two --prompt abc --tokens 40 --seed 3")->out, first) == 0,
          "another text from the same seed");
    CHECK(strcmp(run(0, "sample two --prompt abc --tokens 40 --seed 4")->out, first) != 0,
          "the same text from another seed");
    snprintf(first, sizeof first, "%s", run(0, "sample two --tokens 20 --temperature 0")->out);
    CHECK(strcmp(run(0, "sample two --tokens 20 --top-k 1 --seed 9")->out, first) == 0,
          "top-k 1 is not the likeliest token");
    CHECK(strcmp(run(0, "sample two --tokens 20 --top-p 1e-6 --seed 9")->out, first) == 0,
          "so little probability is not the likeliest token's");
    CHECK(strcmp(run(0, "sample two --tokens 20 --top-p 0.9 --seed 9")->out, first) != 0,
          "most of the probability is one token's");
    check_error(run(1, "sample images"), "reads images");
}

/* A prompt that is read from standard input gives what the same prompt among the flags gives. */
static void reads_a_prompt(void) {
    static char given[1 << 16];
    size_t bytes;
    snprintf(given, sizeof given, "%s", run(0, "sample two --prompt cab --tokens 9 --seed 5")->out);
    const Text line =
        text_of("cd '%s' && printf cab | '%s' sample two --prompt - --tokens 9 --seed 5 >read",
                scratch_path("."), BCD_PROGRAM);
    CHECK(system(line.text) == 0, "status");
    char *read = read_bytes("read", &bytes);
    CHECK(!strcmp(read, given), "\"%s\", not \"%s\"", read, given);
    free(read);
}

/* A text in C ends at a zero byte, so the prompt would be cut there in silence. */
static void refuses_a_zero_byte(void) {
    size_t bytes;
    const Text line = text_of(
        "cd '%s' && ! printf 'ca\\0b' | '%s' sample two --prompt - --tokens 1 >/dev/null 2>refused",
        scratch_path("."), BCD_PROGRAM);
    CHECK(system(line.text) == 0, "status");
    char *refused = read_bytes("refused", &bytes);
    CHECK(!strcmp(refused, "bcd: --prompt -: byte 3 is zero; is it text in UTF-8?\n"), "\"%s\"",
          refused);
    free(refused);
}

/* Counts how often each byte follows "abc" in 16 texts of one token each. */
static int first_tokens(int counts[256], const char *flags) {
    int distinct = 0;
    memset(counts, 0, 256 * sizeof *counts);
    for (int seed = 0; seed < 16; seed++) {
        const Printed *printed =
            run(0, "sample two --prompt abc --tokens 1 --seed %d %s", seed, flags);
        distinct += !counts[(unsigned char)printed->out[3]]++;
    }
    return distinct;
}

/* At this temperature all tokens are about equally likely, so --top-k and --top-p decide how many
 * may be drawn: of 256 or 257 tokens, three have 0.01 of the probability. */
static void draws_from_as_many_as_asked(void) {
    static const struct {
        const char *flags;
        int distinct, max; /* the tokens that occur, and how often one of them may occur */
    } rows[] = {
        {"--temperature 100 --top-k 1", 1, 16},
        {"--temperature 100 --top-k 3", 3, 12},
        {"--temperature 100 --top-p 0.001", 1, 16},
        {"--temperature 100 --top-p 0.01", 3, 12},
        {"--temperature 100 --top-k 3 --top-p 0.5", 2, 13},
        {"--temperature 0.001", 1, 16},
    };
    int counts[256];
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        int distinct = first_tokens(counts, rows[r].flags), max = 0;
        for (int byte = 0; byte < 256; byte++)
            if (counts[byte] > max) max = counts[byte];
        CHECK(distinct == rows[r].distinct && max <= rows[r].max,
              "%s: %d tokens, one of them %d times", rows[r].flags, distinct, max);
    }
    int distinct = first_tokens(counts, "--temperature 100 --top-k 1000000");
    CHECK(distinct > 10, "of all tokens only %d were drawn", distinct);
}

/* Of numbers u that are evenly spread, each token gets its share: of softmax(logits / T). */
static void draws_each_token_by_its_probability(void) {
    enum { TOKENS = 3, NUMBERS = 800 };
    static const struct {
        double temperature, top_p;
        int top_k;
        double share[TOKENS]; /* up to a factor */
    } rows[] = {
        {1, 1, 0, {1, 2, 5}},   {0.5, 1, 0, {1, 4, 25}}, {2, 1, 0, {1, 1.4142136, 2.2360680}},
        {1, 1, 2, {0, 2, 5}},   {1, 0.6, 0, {0, 0, 5}},  {1, 0.65, 0, {0, 2, 5}},
        {1, 0.9, 0, {1, 2, 5}},
    };
    const real logits[] = {0, (real)log(2), (real)log(5)};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        SampleFlags flags = {
            .temperature = rows[r].temperature, .top_p = rows[r].top_p, .top_k = rows[r].top_k};
        int counts[TOKENS] = {0};
        double sum = 0;
        for (int i = 0; i < NUMBERS; i++)
            counts[generator_draw(logits, TOKENS, &flags, (i + 0.5) / NUMBERS)]++;
        for (int v = 0; v < TOKENS; v++) sum += rows[r].share[v];
        for (int v = 0; v < TOKENS; v++)
            CHECK(fabs(counts[v] - NUMBERS * rows[r].share[v] / sum) <= 1,
                  "temperature %g, top-p %g, top-k %d: token %d came %d times", flags.temperature,
                  flags.top_p, flags.top_k, v, counts[v]);
    }
}

/* Overwrites the embeddings of the 44 tokens that only pad the vocabulary, so that one of them is
 * by far the likeliest next token. */
static void raise_the_padding(const char *name) {
    static float weight[300][8];
    hid_t file = H5Fopen(scratch_path(name), H5F_ACC_RDWR, H5P_DEFAULT),
          set = H5Dopen2(file, "/parameters/embedding.token.weight", H5P_DEFAULT);
    CHECK(H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, weight) >= 0, "read");
    for (int v = 256; v < 300; v++)
        for (int c = 0; c < 8; c++) weight[v][c] = (v % 2 ? 1000 : -1000) * weight['a'][c];
    CHECK(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, weight) >= 0, "written");
    H5Dclose(set);
    H5Fclose(file);
}

/* A token that the tokenizer does not have is never drawn: there is no text for it. */
static void draws_no_padding(void) {
    static const char line[] = "sample padded --prompt abc --tokens 9 --temperature 0";
    char before[256];
    run(0,
        "train --model gpt:layers=1,width=8,heads=1,context=16,vocabulary=300 --data words.tokens "
        "--limit 8 --batch 2 --steps 0 --out padded --quiet");
    snprintf(before, sizeof before, "%.255s", run(0, line)->out);
    raise_the_padding("padded/checkpoint.h5");
    CHECK(!strcmp(run(0, line)->out, before), "\"%s\", not \"%s\"", run(0, line)->out, before);
}

/* The model reads the last 16 letters: what was before them does not change what follows. */
static void samples_from_the_last_tokens(void) {
    static const char tail[] = "abcabcbcaabcabcd", flags[] = "--tokens 12 --temperature 1";
    char follows[64];
    const Printed *printed = run(0, "sample two --prompt %s %s", tail, flags);
    snprintf(follows, sizeof follows, "%.60s", printed->out + strlen(tail));
    printed = run(0, "sample two --prompt zzz%s %s", tail, flags);
    CHECK(strcmp(printed->out + 3 + strlen(tail), follows) == 0, "\"%s\", not \"%s\"", printed->out,
          follows);
    CHECK(
        strstr(printed->error, "the prompt has 19 tokens, of which the model reads the last 16\n"),
        "\"%s\"", printed->error);
}

/* Keeping keys and values changes no bit, also where the context is full and half of it is computed
 * again. */
static void keeps_what_it_has_read(void) {
    Options asked;
    Setup setup;
    Generator generator;
    int text[60];
    options_defaults(&asked, COMMAND_TRAIN);
    if (!CHECK(model_open_run(&setup, scratch_path("two"), &asked) == 0, "%s", error_message()))
        return;
    const size_t bytes = (size_t)setup.model->outputs * sizeof(real);
    generator_open(&generator, setup.stage);
    for (int i = 0; i < 60; i++) text[i] = 97 + i * i % 11;
    for (size_t count = 3; count <= 60; count++) {
        static real next[512], whole[16 * 512];
        memcpy(next, generator_next(&generator, text, count), bytes);
        const size_t start = generator.start;
        CHECK(start == (count <= 16 ? 0 : (count - 8) / 9 * 9), "%zu tokens from %zu on", count,
              start);
        tiny_read_whole(whole, setup.stage, text + start, count - start);
        const real *last = whole + (count - start - 1) * (size_t)setup.model->outputs;
        CHECK(memcmp(next, last, bytes) == 0, "after %zu tokens", count);
    }
    generator_close(&generator);
    setup_free(&setup);
}

void test_sample(void) {
    make_words();
    run(0, "train " GPT "--steps 30 --out two --quiet");
    run(0, "train " RESNET "--steps 0 --out images --quiet");
    RUN(samples);
    RUN(reads_a_prompt);
    RUN(refuses_a_zero_byte);
    RUN(draws_from_as_many_as_asked);
    RUN(draws_each_token_by_its_probability);
    RUN(draws_no_padding);
    RUN(samples_from_the_last_tokens);
    RUN(keeps_what_it_has_read);
}
