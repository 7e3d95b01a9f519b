/* How fast GPT-2's tokenizer is. */
#include <stdio.h>
#include <stdlib.h>

#include "../../data/file.h"
#include "../../data/tokenizer.h"
#include "../../ref/base/error.h"
#include "../../ref/base/random.h"
#include "bench.h"

typedef struct {
    const char *dir; /* for a new tokenizer in each call; NULL: the shared one */
    Tokenizer *tokenizer;
    const char *text;
    size_t bytes;
    bool failed;
} TokensRun;

static void run_tokens(void *context) {
    TokensRun *r = context;
    int *tokens = NULL;
    size_t count = 0;
    Tokenizer *t = r->dir ? tokenizer_gpt2(r->dir, 0) : r->tokenizer;
    r->failed |= !t || t->encode(t, r->text, r->bytes, &tokens, &count);
    if (r->dir && t) tokenizer_free(t);
    free(tokens);
}

static int print_tokens(const char *what, TokensRun run, double min_ms) {
    Times times = bench_repeat(run_tokens, &run, min_ms);
    double ms = times_median(&times);
    if (!run.failed) printf("%-44s %9.3f ms %6.1f MB/s\n", what, ms, 1e-3 * (double)run.bytes / ms);
    return run.failed ? -1 : 0;
}

static int bench_words(const char *dir, Tokenizer *tokenizer, const char *path, double min_ms) {
    enum { LONG_WORD = 1 << 20 };
    size_t bytes;
    char *text = (char *)file_read("bench", path, "name a text", &bytes), *word = malloc(LONG_WORD);
    int status = word ? 0 : error_set("bench: out of memory");
    for (size_t i = 0; word && i < LONG_WORD; i++)
        word[i] = (char)('a' + random_below(1, STREAM_SYNTHETIC, i, 26));
    if (!text) status = -1;
    if (!status)
        status =
            print_tokens("WikiText-2, with loading the vocabulary",
                         (TokensRun){dir, NULL, text, bytes, false}, min_ms) ||
            print_tokens("WikiText-2", (TokensRun){NULL, tokenizer, text, bytes, false}, min_ms) ||
            print_tokens("a megabyte of letters without a space",
                         (TokensRun){NULL, tokenizer, word, LONG_WORD, false}, min_ms);
    free(text);
    free(word);
    return status ? -1 : 0;
}

int bench_tokens(const char *data_dir, double min_ms) {
    char dir[PATH_BYTES], path[PATH_BYTES];
    printf("\ntokens of GPT-2\n");
    if (path_join(dir, data_dir, "gpt2-bpe") || path_join(path, data_dir, "wikitext-2/valid.txt"))
        return -1;
    Tokenizer *tokenizer = tokenizer_gpt2(dir, 0);
    FILE *file = tokenizer ? fopen(path, "rb") : NULL;
    int status = 0;
    if (!tokenizer)
        printf("left out: %s\n", error_message());
    else if (!file)
        printf("left out: no %s\n", path);
    else
        status = bench_words(dir, tokenizer, path, min_ms);
    if (file) fclose(file);
    if (tokenizer) tokenizer_free(tokenizer);
    return status;
}
