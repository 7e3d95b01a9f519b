/* `bcd sample`: text from a trained language model, one token after the other. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "../../ref/random.h"
#include "../commands.h"
#include "../store/checkpoint.h"

typedef struct {
    Setup setup;
    Tokenizer *tokenizer;
    int *text; /* the tokens so far: prompt, then what was sampled */
    size_t count;
    Batch batch;
    real *logits; /* [context][vocabulary] */
} Sampling;

/* Logits of the token after the last.  The model sees the last `context` tokens; where there are
 * fewer the rest is filled with token 0, which causal attention does not look at. */
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

/* The smallest logit among the k largest. */
static int threshold(real *min, const real *logits, int vocabulary, int k) {
    size_t count = (size_t)vocabulary;
    real *sorted = malloc(count * sizeof *sorted);
    if (!sorted) return error_set("sample: out of memory");
    memcpy(sorted, logits, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, descending);
    *min = sorted[k - 1];
    free(sorted);
    return 0;
}

/* Draws from softmax(logits / temperature) with the uniform number u; -1 and an error. */
static int draw(const real *logits, int vocabulary, const Options *o, double u) {
    int best = 0;
    for (int v = 1; v < vocabulary; v++)
        if (logits[v] > logits[best]) best = v;
    if (o->temperature <= 0) return best;
    real min = (real)-INFINITY;
    if (o->top_k && o->top_k < vocabulary && threshold(&min, logits, vocabulary, o->top_k))
        return -1;
    double sum = 0, highest = (double)logits[best];
    for (int v = 0; v < vocabulary; v++)
        if (logits[v] >= min) sum += exp(((double)logits[v] - highest) / o->temperature);
    double left = u * sum;
    for (int v = 0; v < vocabulary; v++) {
        if (!(logits[v] >= min)) continue;
        left -= exp(((double)logits[v] - highest) / o->temperature);
        if (left < 0) return v;
    }
    return best;
}

static void print_token(const Sampling *s, int token) {
    size_t bytes;
    const char *text = s->tokenizer->decode(s->tokenizer, token, &bytes);
    fwrite(text, 1, bytes, stdout);
    fflush(stdout);
}

static int start_text(Sampling *s, const Options *o) {
    const Tokenizer *tokenizer = s->tokenizer;
    size_t room = strlen(o->prompt) + 1 + (size_t)o->tokens;
    if (tokenizer->vocabulary > s->setup.model->outputs)
        return error_set("sample: the tokenizer %s has %d tokens, the model %d", tokenizer->name,
                         tokenizer->vocabulary, s->setup.model->outputs);
    if (tokenizer->encode(tokenizer, o->prompt, strlen(o->prompt), &s->text, &s->count)) return -1;
    int *grown = realloc(s->text, room * sizeof *grown);
    if (!grown) return error_set("sample: out of memory");
    s->text = grown;
    /* Something has to come first: the mark between documents, or a new line. */
    if (!s->count)
        s->text[s->count++] = tokenizer->end_of_text >= 0 ? tokenizer->end_of_text : '\n';
    printf("%s", o->prompt);
    return 0;
}

static int sample(Sampling *s, const Options *o) {
    const Model *model = s->setup.model;
    s->logits = malloc((size_t)model->input.w * (size_t)model->outputs * sizeof *s->logits);
    if (!s->logits) return error_set("sample: out of memory");
    if (batch_reserve(&s->batch, model, 1) || start_text(s, o)) return -1;
    memset(s->batch.targets, 0, (size_t)model->targets * sizeof *s->batch.targets);
    s->batch.ids[0] = 0;
    s->batch.n = 1;
    for (int i = 0; i < o->tokens; i++) {
        /* A model may tell more tokens apart than the tokenizer has: those are never drawn. */
        int token = draw(next_logits(s), s->tokenizer->vocabulary, o,
                         random_uniform(o->seed, STREAM_SAMPLE, (uint64_t)i));
        if (token < 0) return -1;
        s->text[s->count++] = token;
        print_token(s, token);
    }
    printf("\n");
    return 0;
}

static int open_trained(Sampling *s, const Options *o) {
    /* One sequence at a time needs no room for a batch. */
    Options asked = *o;
    asked.batch = 1;
    asked.given[options_find("batch", COMMAND_TRAIN)] = true;
    asked.command = COMMAND_TRAIN;
    if (checkpoint_open(&s->setup, o->positional[0], &asked)) return -1;
    const Options *stored = &s->setup.options;
    if (!s->setup.model->tokens)
        return error_set("%s: %s reads images; bcd sample is for language models", o->positional[0],
                         s->setup.model->name);
    s->tokenizer = data_tokenizer(stored->data, stored->data_dir[0] ? stored->data_dir : NULL);
    return s->tokenizer ? 0 : -1;
}

int command_sample(const Options *options) {
    Sampling s = {.text = NULL};
    int failed = open_trained(&s, options) || sample(&s, options);
    tokenizer_free(s.tokenizer);
    batch_free(&s.batch);
    free(s.text);
    free(s.logits);
    setup_free(&s.setup);
    return failed ? -1 : 0;
}
