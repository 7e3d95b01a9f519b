#include "tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../ref/base/checksum.h"
#include "../ref/base/error.h"

void tokens_free(Tokens *tokens) {
    if (tokens->mapped) {
        munmap(tokens->base, tokens->mapped);
        close(tokens->file);
    } else {
        free(tokens->base);
    }
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
    int *window; /* [samples]: a masked sample's place, in contexts from begin; NULL: its id */
} TokenSet;

static void tokens_fetch(const Dataset *dataset, Batch *batch, uint64_t position) {
    (void)position; /* there is no augmentation */
    const TokenSet *set = (const TokenSet *)dataset;
    const int context = dataset->input.w;
    for (int n = 0; n < batch->n; n++) {
        const int window = set->window ? set->window[batch->ids[n]] : batch->ids[n];
        const size_t from = set->begin + (size_t)window * (size_t)context;
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
    free(set->window);
    free(set);
}

/* Returns the number of samples that fit, or -1 and an error if there is none. */
static int count_samples(const char *name, size_t tokens, int context) {
    if (context < 1)
        return error_set("%s: a context of %d tokens; it must be 1 at least", name, context);
    size_t samples = tokens ? (tokens - 1) / (size_t)context : 0;
    if (samples < 1)
        return error_set("%s: %zu tokens are too few for a context of %d; it needs %d", name,
                         tokens, context, context + 1);
    return samples < INT32_MAX ? (int)samples : INT32_MAX;
}

static bool has_target(const TokenSet *set, int window) {
    const size_t context = (size_t)set->base.input.w;
    const size_t from = set->begin + (size_t)window * context;
    for (size_t i = 1; i <= context; i++)
        if (tokens_is_target(&set->tokens, from + i)) return true;
    return false;
}

/* Finds the samples of a masked file that have a target.  Of the others a batch could have no
 * target at all, and so no loss. */
static int find_windows(TokenSet *set) {
    const int windows = set->base.samples;
    set->window = malloc((size_t)windows * sizeof *set->window);
    if (!set->window) return error_set("%s: out of memory", set->base.name);
    set->base.samples = 0;
    for (int w = 0; w < windows; w++)
        if (has_target(set, w)) set->window[set->base.samples++] = w;
    if (set->base.samples) return 0;
    return error_set("%s: no token is a target of the loss", set->base.name);
}

/* Returns the checksum of the tokens up to the last sample's last. */
static uint64_t checksum_of(const TokenSet *set) {
    const int last = set->base.samples - 1, window = set->window ? set->window[last] : last;
    const size_t used = ((size_t)window + 1) * (size_t)set->base.input.w + 1;
    uint64_t sum = CHECKSUM_START;
    for (size_t i = 0; i < used; i++)
        sum = checksum_add(sum, tokens_raw(&set->tokens, set->begin + i));
    return sum;
}

Dataset *tokens_dataset(const char *name, Tokens tokens, size_t begin, size_t end, int context,
                        int limit) {
    const int samples = count_samples(name, end - begin, context);
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
    if (tokens.masked && find_windows(set)) {
        tokenset_free(&set->base);
        return NULL;
    }
    if (limit > 0 && limit < set->base.samples) set->base.samples = limit;
    set->base.checksum = checksum_of(set);
    /* The checks have read all of a mapped file, which would count as memory of the process, and
     * once more for each split. */
    if (tokens.mapped) madvise(tokens.base, tokens.mapped, MADV_DONTNEED);
    return &set->base;
}

int tokens_unchanged(const Dataset *dataset) {
    const TokenSet *set = (const TokenSet *)dataset;
    struct stat now;
    if (dataset->fetch != tokens_fetch || !set->tokens.mapped) return 0;
    const struct timespec *before = &set->tokens.changed;
    const bool known = fstat(set->tokens.file, &now) == 0;
    if (known && (size_t)now.st_size == set->tokens.mapped &&
        now.st_mtim.tv_sec == before->tv_sec && now.st_mtim.tv_nsec == before->tv_nsec)
        return 0;
    /* Another time alone, as touch gives it, is no harm. */
    if (known && (size_t)now.st_size >= set->tokens.mapped &&
        checksum_of(set) == set->base.checksum)
        return 0;
    return error_set("%s: its file was written to while it was in use; put back what it had",
                     dataset->name);
}
