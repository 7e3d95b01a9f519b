/* `bcd sample`: text from a trained language model, token by token. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../data/file.h"
#include "../../ref/base/error.h"
#include "../../ref/base/random.h"
#include "../alloc.h"
#include "../commands.h"
#include "../convert/convert.h"
#include "../train/python.h"

typedef struct {
    Setup setup;
    Tokenizer *tokenizer; /* NULL: Python reads that of the model in options.init */
    int *text;            /* tokens so far: the prompt, then what was sampled */
    size_t count;
    Batch batch;
    real *logits;   /* [context][vocabulary] */
    FILE *exchange; /* tokens from Python and to it */
} Sampling;

/* Returns the logits of the next token.  The model sees the last `context` tokens; if there are
 * fewer, the rest is filled with token 0, which causal attention does not see. */
static const real *next_logits(Sampling *s) {
    const Model *model = s->setup.model;
    Stage *stage = s->setup.stage;
    size_t context = (size_t)model->input.w;
    size_t visible = s->count < context ? s->count : context;
    memset(s->batch.tokens, 0, context * sizeof *s->batch.tokens);
    memcpy(s->batch.tokens, s->text + s->count - visible, visible * sizeof *s->text);
    stage->is->begin(stage, &s->batch, MODE_EVALUATE);
    for (int b = 0; b < model->blocks; b++) stage->is->forward(stage, b);
    stage->is->read(stage, TENSOR_VALUE, model->blocks - 1, s->logits);
    return s->logits + (visible - 1) * (size_t)model->outputs;
}

static int descending(const void *a, const void *b) {
    real x = *(const real *)a, y = *(const real *)b;
    return (x < y) - (x > y);
}

/* Returns the smallest logit that may be drawn: of the k largest (0: all), the largest that
 * together have probability p (nucleus sampling, Holtzman et al. 2020). */
static real threshold(const real *logits, int vocabulary, const SampleFlags *flags) {
    const size_t count = (size_t)vocabulary, k = (size_t)flags->top_k;
    size_t allowed = k && k < count ? k : count, kept = 0;
    double sum = 0, part = 0;
    real *sorted = xmalloc(count * sizeof *sorted);
    memcpy(sorted, logits, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, descending);
    for (size_t i = 0; i < allowed; i++)
        sum += exp((double)(sorted[i] - sorted[0]) / flags->temperature);
    while (kept < allowed && part < flags->top_p * sum)
        part += exp((double)(sorted[kept++] - sorted[0]) / flags->temperature);
    real min = sorted[kept ? kept - 1 : 0];
    free(sorted);
    return min;
}

/* Returns a token drawn from softmax(logits / temperature) with the uniform number u. */
static int draw(const real *logits, int vocabulary, const SampleFlags *flags, double u) {
    int best = 0;
    for (int v = 1; v < vocabulary; v++)
        if (logits[v] > logits[best]) best = v;
    if (flags->temperature <= 0) return best;
    bool limited = flags->top_k || flags->top_p < 1;
    real min = limited ? threshold(logits, vocabulary, flags) : (real)-INFINITY;
    double sum = 0, highest = (double)logits[best];
    for (int v = 0; v < vocabulary; v++)
        if (logits[v] >= min) sum += exp(((double)logits[v] - highest) / flags->temperature);
    double left = u * sum;
    for (int v = 0; v < vocabulary; v++) {
        if (!(logits[v] >= min)) continue;
        left -= exp(((double)logits[v] - highest) / flags->temperature);
        if (left < 0) return v;
    }
    return best;
}

/* ---- the model's own tokenizer --------------------------------------------------------------- */

/* Runs data/encode.py MODE DIR ARGUMENT with its output to `out`, or if NULL to standard output. */
static int encode_py(const Sampling *s, const char *mode, const char *argument, FILE *out) {
    const char *arguments[] = {mode, s->setup.options.init, argument};
    fflush(stdout);
    return python_run("data/encode.py", arguments, 3, out) == PYTHON_DONE ? 0 : -1;
}

/* Overwrites s->text with the prompt's tokens, with space for those to come. */
static int encode_prompt(Sampling *s, const SampleFlags *flags) {
    unsigned char raw[4];
    s->exchange = tmpfile();
    if (!s->exchange) return error_set("sample: no temporary file");
    if (encode_py(s, "--prompt", flags->prompt, s->exchange)) return -1;
    fseek(s->exchange, 0, SEEK_END);
    const size_t count = (size_t)ftell(s->exchange) / 4;
    s->text = xmalloc((count + (size_t)flags->tokens) * sizeof *s->text);
    rewind(s->exchange);
    while (s->count < count && fread(raw, 1, 4, s->exchange) == 4) {
        const int token = (int)little_endian_get(raw, 4);
        if (token < 0 || token >= s->setup.model->outputs)
            return error_set(
                "sample: the tokenizer in %s gives token %d, the model has only %d tokens",
                s->setup.options.init, token, s->setup.model->outputs);
        s->text[s->count++] = token;
    }
    if (s->count) return 0;
    return error_set(
        "sample: give a --prompt to begin with; this tokenizer has no token for the beginning of a "
        "text");
}

/* Decodes the text as a whole, as the text of a token may depend on those before it. */
static int print_decoded(const Sampling *s) {
    unsigned char raw[4];
    rewind(s->exchange);
    for (size_t i = 0; i < s->count; i++) {
        little_endian_put(raw, 4, (unsigned)s->text[i]);
        fwrite(raw, 1, 4, s->exchange);
    }
    if (fflush(s->exchange)) return error_set("sample: cannot write a temporary file");
    return encode_py(s, "--decode", text_of("/dev/fd/%d", fileno(s->exchange)).text, NULL);
}

/* ---- text ------------------------------------------------------------------------------------ */

static int start_text(Sampling *s, const SampleFlags *flags) {
    const Tokenizer *tokenizer = s->tokenizer;
    if (!tokenizer) return encode_prompt(s, flags);
    size_t capacity = strlen(flags->prompt) + 1 + (size_t)flags->tokens;
    if (tokenizer->vocabulary > s->setup.model->outputs)
        return error_set("sample: the tokenizer %s has %d tokens, the model only %d",
                         tokenizer->name, tokenizer->vocabulary, s->setup.model->outputs);
    if (tokenizer->encode(tokenizer, flags->prompt, strlen(flags->prompt), &s->text, &s->count))
        return -1;
    s->text = xrealloc(s->text, capacity * sizeof *s->text);
    /* Without a prompt begins with the mark between documents, or a new line. */
    if (!s->count)
        s->text[s->count++] = tokenizer->end_of_text >= 0 ? tokenizer->end_of_text : '\n';
    printf("%s", flags->prompt);
    return 0;
}

static int sample(Sampling *s, const SampleFlags *flags, uint64_t seed) {
    const Model *model = s->setup.model;
    s->logits = xmalloc((size_t)model->input.w * (size_t)model->outputs * sizeof *s->logits);
    if (batch_reserve(&s->batch, model, 1) || start_text(s, flags)) return -1;
    memset(s->batch.targets, 0, (size_t)model->targets * sizeof *s->batch.targets);
    s->batch.ids[0] = 0;
    s->batch.n = 1;
    for (int i = 0; i < flags->tokens; i++) {
        /* The model may have more tokens than the tokenizer, which are never drawn. */
        int token = draw(next_logits(s), s->tokenizer ? s->tokenizer->vocabulary : model->outputs,
                         flags, random_uniform(seed, STREAM_SAMPLE, (uint64_t)i));
        s->text[s->count++] = token;
        if (!s->tokenizer) continue;
        size_t bytes;
        const char *text = s->tokenizer->decode(s->tokenizer, token, &bytes);
        fwrite(text, 1, bytes, stdout);
        fflush(stdout);
    }
    if (!s->tokenizer && print_decoded(s)) return -1;
    printf("\n");
    return 0;
}

static bool has_tokenizer(const char *dir) {
    char path[PATH_BYTES];
    for (int i = 0; *dir && i < TOKENIZER_FILES; i++)
        if (!path_join(path, dir, tokenizer_files[i]) && access(path, R_OK) == 0) return true;
    return false;
}

/* Opens the model, and the tokenizer of its data or, if that is not one of ours, the model's
 * own. */
static int open_trained(Sampling *s, const CommandLine *line) {
    const char *dir = line->options.init;
    if (convert_open(&s->setup, line)) return -1;
    const Options *stored = &s->setup.options;
    if (!s->setup.model->tokens)
        return error_set("%s: %s reads images; bcd sample is for language models",
                         line->positional[0], s->setup.model->name);
    if (!*dir)
        s->tokenizer = data_tokenizer(stored->data, stored->data_dir[0] ? stored->data_dir : NULL);
    if (s->tokenizer || has_tokenizer(stored->init)) return 0;
    return *dir ? error_set("%s: holds neither tokenizer.json nor tokenizer.model", dir) : -1;
}

int command_sample(const CommandLine *line) {
    Sampling s = {.text = NULL};
    int failed = open_trained(&s, line) || sample(&s, &line->sample, line->options.seed);
    tokenizer_free(s.tokenizer);
    batch_free(&s.batch);
    free(s.text);
    free(s.logits);
    if (s.exchange) fclose(s.exchange);
    setup_free(&s.setup);
    return failed ? -1 : 0;
}
