#include "tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../ref/error.h"
#include "checksum.h"

void tokens_free(Tokens *tokens) {
    if (tokens->mapped)
        munmap(tokens->base, tokens->mapped);
    else
        free(tokens->base);
    memset(tokens, 0, sizeof *tokens);
}

Tokens tokens_of_bytes(unsigned char *bytes, size_t count) {
    return (Tokens){.data = bytes,
                    .count = count,
                    .width = 1,
                    .vocabulary = 256,
                    .tokenizer = "bytes",
                    .base = bytes};
}

int tokens_pack(Tokens *tokens, const int *numbers, size_t count, const char *tokenizer,
                int vocabulary) {
    const int width = vocabulary <= 1 << 16 ? 2 : 4;
    unsigned char *data = malloc(count * (size_t)width + 1);
    if (!data) return error_set("tokens: no memory for %zu tokens", count);
    *tokens = (Tokens){
        .data = data, .count = count, .width = width, .vocabulary = vocabulary, .base = data};
    snprintf(tokens->tokenizer, sizeof tokens->tokenizer, "%s", tokenizer);
    for (size_t i = 0; i < count; i++)
        little_endian_put(data + i * (size_t)width, width, (unsigned)numbers[i]);
    return 0;
}

typedef struct {
    Dataset base;
    Tokens tokens;
    size_t begin;
} TokenSet;

static void tokens_fetch(const Dataset *dataset, Batch *batch, uint64_t position) {
    (void)position; /* there is no augmentation */
    const TokenSet *set = (const TokenSet *)dataset;
    const int context = dataset->input.w;
    for (int n = 0; n < batch->n; n++) {
        const size_t from = set->begin + (size_t)batch->ids[n] * (size_t)context;
        int *tokens = batch->tokens + (size_t)n * (size_t)context;
        int *targets = batch->targets + (size_t)n * (size_t)context;
        for (int t = 0; t < context; t++) {
            tokens[t] = tokens_at(&set->tokens, from + (size_t)t);
            const size_t next = from + (size_t)t + 1;
            targets[t] = tokens_is_target(&set->tokens, next) ? tokens_at(&set->tokens, next) : -1;
        }
    }
}

static void tokenset_free(Dataset *dataset) {
    TokenSet *set = (TokenSet *)dataset;
    tokens_free(&set->tokens);
    free(set);
}

/* Returns the number of samples, or -1 and an error if there is none. */
static int count_samples(const char *name, size_t tokens, int context, int limit) {
    if (context < 1)
        return error_set("%s: a context of %d tokens; it must be 1 at least", name, context);
    size_t samples = tokens ? (tokens - 1) / (size_t)context : 0;
    if (samples < 1)
        return error_set("%s: %zu tokens are too few for a context of %d; it needs %d", name,
                         tokens, context, context + 1);
    if (limit > 0 && (size_t)limit < samples) samples = (size_t)limit;
    return samples < INT32_MAX ? (int)samples : INT32_MAX;
}

Dataset *tokens_dataset(const char *name, Tokens tokens, size_t begin, size_t end, int context,
                        int limit) {
    const int samples = count_samples(name, end - begin, context, limit);
    TokenSet *set = samples < 0 ? NULL : calloc(1, sizeof *set);
    if (!set) {
        if (samples > 0) error_set("%s: out of memory", name);
        tokens_free(&tokens);
        return NULL;
    }
    snprintf(set->base.name, sizeof set->base.name, "%s", name);
    set->tokens = tokens;
    set->begin = begin;
    set->base.samples = samples;
    set->base.tokens = true;
    set->base.input = (Shape){1, context, 1};
    set->base.classes = tokens.vocabulary;
    snprintf(set->base.tokenizer, sizeof set->base.tokenizer, "%s", tokens.tokenizer);
    set->base.fetch = tokens_fetch;
    set->base.free = tokenset_free;
    set->base.checksum = CHECKSUM_START;
    const size_t used = (size_t)samples * (size_t)context + 1;
    for (size_t i = 0; i < used; i++)
        set->base.checksum = checksum_add(set->base.checksum, tokens_raw(&tokens, begin + i));
    return &set->base;
}
