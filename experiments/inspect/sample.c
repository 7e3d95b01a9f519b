/* `bcd sample`: text from a trained language model, token by token. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/file.h"
#include "../../ref/base/error.h"
#include "../../ref/base/random.h"
#include "../base/alloc.h"
#include "../cli/commands.h"
#include "../convert/convert.h"
#include "../train/open_model.h"
#include "generate.h"
#include "python.h"

enum { ENDS = 64 };

typedef struct {
    Setup setup;
    char *prompt;
    const char *dir;           /* of a model, whose tokenizer Python reads */
    Tokenizer *tokenizer;      /* one of ours; NULL: that of dir */
    int vocabulary;            /* of the tokenizer; the model may have more tokens, never drawn */
    int ends[ENDS], end_count; /* tokens that end a text */
    int *text;                 /* tokens so far: the prompt, then what was sampled */
    size_t count;
    Generator generator;
    PythonProcess *python; /* the tokenizer of dir */
} Sampling;

/* ---- the model's own tokenizer --------------------------------------------------------------- */

/* Starts it, and reads its first line: the vocabulary, and the tokens that end a text. */
static int open_tokenizer(Sampling *s, const SampleFlags *flags) {
    char line[4096];
    const char *arguments[] = {flags->chat ? "--chat" : "--prompt", s->dir}, *at = line;
    int number, used;
    s->python = python_open("data/encode.py", arguments, 2, line, sizeof line);
    if (!s->python) return -1;
    for (; sscanf(at, "%d%n", &number, &used) == 1; at += used)
        if (!s->vocabulary)
            s->vocabulary = number;
        else if (s->end_count < ENDS)
            s->ends[s->end_count++] = number;
        else
            return error_set("%s: more than %d tokens end a text", s->dir, ENDS);
    return s->vocabulary > 0 ? 0 : error_set("sample: data/encode.py gave no vocabulary");
}

/* Overwrites s->text with the prompt's tokens, with space for those to come. */
static int encode_prompt(Sampling *s, const SampleFlags *flags) {
    size_t bytes;
    if (open_tokenizer(s, flags)) return -1;
    const unsigned char *raw = python_ask(s->python, s->prompt, strlen(s->prompt), &bytes);
    if (!raw) return -1;
    s->count = bytes / 4;
    s->text = xmalloc((s->count + (size_t)flags->tokens) * sizeof *s->text);
    for (size_t i = 0; i < s->count; i++) s->text[i] = (int)little_endian_get(raw + 4 * i, 4);
    if (s->count) return 0;
    return error_set(
        "sample: give a --prompt to begin with; this tokenizer has no token for the beginning of a "
        "text");
}

/* Prints what the tokens from `begin` on add to the text; without any, what is left of it. */
static int print_decoded(const Sampling *s, size_t begin) {
    const size_t count = s->count - begin;
    size_t bytes;
    unsigned char *raw = xmalloc(4 * count + 1);
    for (size_t i = 0; i < count; i++)
        little_endian_put(raw + 4 * i, 4, (unsigned)s->text[begin + i]);
    const unsigned char *text = python_ask(s->python, raw, 4 * count, &bytes);
    free(raw);
    if (!text) return -1;
    fwrite(text, 1, bytes, stdout);
    fflush(stdout);
    return 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Checks that the model knows the tokens of the prompt. */
static int check_tokens(const Sampling *s) {
    for (size_t i = 0; i < s->count; i++)
        if (s->text[i] < 0 || s->text[i] >= s->setup.model->outputs)
            return error_set(
                "sample: the tokenizer in %s gives token %d, the model has only %d tokens", s->dir,
                s->text[i], s->setup.model->outputs);
    return 0;
}

static int start_text(Sampling *s, const SampleFlags *flags) {
    const Tokenizer *tokenizer = s->tokenizer;
    if (!tokenizer) {
        if ((!s->text && encode_prompt(s, flags)) || check_tokens(s)) return -1;
        return flags->chat ? 0 : print_decoded(s, 0); /* of a chat only the answer is printed */
    }
    if (flags->chat)
        return error_set("--chat: the tokenizer %s has no chat template; it takes --init DIR",
                         tokenizer->name);
    size_t capacity = strlen(s->prompt) + 1 + (size_t)flags->tokens;
    if (tokenizer->vocabulary > s->setup.model->outputs)
        return error_set("sample: the tokenizer %s has %d tokens, the model only %d",
                         tokenizer->name, tokenizer->vocabulary, s->setup.model->outputs);
    if (tokenizer->encode(tokenizer, s->prompt, strlen(s->prompt), &s->text, &s->count)) return -1;
    s->text = xrealloc(s->text, capacity * sizeof *s->text);
    /* Without a prompt begins with the mark between documents, or a new line. */
    if (!s->count)
        s->text[s->count++] = tokenizer->end_of_text >= 0 ? tokenizer->end_of_text : '\n';
    printf("%s", s->prompt);
    return 0;
}

/* Returns true if the model's own tokenizer says that a text ends with this token. */
static bool is_end(const Sampling *s, int token) {
    int i = 0;
    while (i < s->end_count && s->ends[i] != token) i++;
    return i < s->end_count;
}

static int check_finite(const real *logits, int count, int place) {
    for (int i = 0; i < count; i++)
        if (!isfinite((double)logits[i]))
            return error_set(
                "token %d: the model's logits are not finite; did its training diverge?",
                place + 1);
    return 0;
}

/* A prompt that is longer than what the model reads at a time has lost its beginning. */
static void say_what_is_left_out(const Sampling *s) {
    const size_t context = (size_t)s->setup.model->input.w;
    if (s->count <= context) return;
    fflush(stdout);
    fprintf(stderr, "bcd: the prompt has %zu tokens, of which the model reads the last %zu\n",
            s->count, context);
}

static int sample(Sampling *s, const SampleFlags *flags, uint64_t seed) {
    generator_open(&s->generator, s->setup.stage);
    if (start_text(s, flags)) return -1;
    say_what_is_left_out(s);
    const int known = s->tokenizer ? s->tokenizer->vocabulary : s->vocabulary;
    const int vocabulary = known < s->setup.model->outputs ? known : s->setup.model->outputs;
    for (int i = 0; i < flags->tokens; i++) {
        const real *logits = generator_next(&s->generator, s->text, s->count);
        if (!logits || check_finite(logits, vocabulary, i)) return -1;
        const int token = generator_draw(logits, vocabulary, flags,
                                         random_uniform(seed, STREAM_SAMPLE, (uint64_t)i));
        s->text[s->count++] = token;
        if (!s->tokenizer) {
            if (print_decoded(s, s->count - 1)) return -1;
            if (is_end(s, token)) break;
            continue;
        }
        if (token == s->tokenizer->end_of_text) break;
        size_t bytes;
        const char *text = s->tokenizer->decode(s->tokenizer, token, &bytes);
        fwrite(text, 1, bytes, stdout);
        fflush(stdout);
    }
    if (!s->tokenizer && print_decoded(s, s->count)) return -1;
    printf("\n");
    return 0;
}

static bool has_tokenizer(const char *dir) {
    for (int i = 0; i < TOKENIZER_FILES; i++)
        if (dir_has(dir, tokenizer_files[i])) return true;
    return false;
}

/* Opens a run's model, and the tokenizer of its data or, if that is not one of ours, that of the
 * model it began with. */
static int open_run(Sampling *s, const CommandLine *line) {
    if (model_open(&s->setup, line)) return -1;
    const Options *stored = &s->setup.options;
    if (!s->setup.model->tokens)
        return error_set("%s: %s reads images; bcd sample is for language models",
                         line->positional[0], s->setup.model->name);
    s->dir = *s->setup.init ? s->setup.init : stored->init;
    const char *dir = stored->data_dir[0] ? stored->data_dir : NULL;
    /* Runs of earlier versions do not name it. */
    s->tokenizer = *s->setup.tokenizer ? data_named_tokenizer(s->setup.tokenizer, dir)
                                       : data_tokenizer(stored->data, dir);
    if (s->tokenizer) return 0;
    if (has_tokenizer(s->dir)) return tokenizer_check(s->dir, s->setup.tokenizer);
    if (strncmp(s->setup.tokenizer, "hf:", 3) != 0) return -1;
    return error_set(
        "%s: its tokens are of the tokenizer %s, which %s%s; export the run (bcd export --help) "
        "and sample from the directory with --init",
        line->positional[0], s->setup.tokenizer, *s->dir ? "is no longer in " : "it does not name",
        s->dir);
}

/* Opens the model in a directory, with as long a context as the text will need. */
static int open_directory(Sampling *s, const CommandLine *line) {
    CommandLine sized = *line;
    char name[TOKENIZER_NAME];
    int positions;
    s->dir = line->options.init;
    if (tokenizer_of_model(name, s->dir) || (positions = convert_positions_of(s->dir)) < 0 ||
        encode_prompt(s, &line->options.sample))
        return -1;
    const size_t needed = s->count + (size_t)line->options.sample.tokens;
    if (!line->options.context)
        sized.options.context = needed < (size_t)positions ? (int)needed : positions;
    return model_open(&s->setup, &sized);
}

/* Takes the prompt, or reads it from standard input, where no locale changes its bytes. */
static int take_prompt(Sampling *s, const char *prompt) {
    size_t bytes;
    if (strcmp(prompt, "-") != 0) {
        s->prompt = xstrdup(prompt);
        return 0;
    }
    s->prompt = (char *)file_read("sample", "/dev/stdin", "--prompt - reads it", &bytes);
    if (!s->prompt) return -1;
    const size_t length = strlen(s->prompt);
    if (length == bytes) return 0;
    return error_set("--prompt -: byte %zu is zero; is it text in UTF-8?", length + 1);
}

int command_sample(const CommandLine *line) {
    if (model_check_given(line)) return -WRONG_USE;
    Sampling s = {.text = NULL};
    int failed = take_prompt(&s, line->options.sample.prompt) ||
                 (*line->options.init ? open_directory(&s, line) : open_run(&s, line)) ||
                 sample(&s, &line->options.sample, line->options.seed);
    tokenizer_free(s.tokenizer);
    generator_close(&s.generator);
    free(s.text);
    free(s.prompt);
    python_close(s.python);
    setup_free(&s.setup);
    return failed ? -1 : 0;
}
