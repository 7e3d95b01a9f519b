/* GPT-2's tokenizer, a byte-pair encoding (Sennrich, Haddow, Birch 2016; Radford et al. 2019): text
 * is cut into words (pretoken.h), and in each word pairs of neighbouring tokens merge.  Written
 * out,
 * <|endoftext|> is the token of that name, as in transformers. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/base/error.h"
#include "file.h"
#include "pretoken.h"
#include "tokenizer.h"
#include "vocabulary.h"

typedef struct {
    Tokenizer base;
    Vocabulary vocabulary;
    char name[16];
    Pretokenizer *pretokenizer;
} Gpt2;

/* The tokens of a text so far. */
typedef struct {
    const Vocabulary *vocabulary;
    int *tokens;
    size_t count;
} Output;

/* Merges the tokens of a word in place and returns how many are left.  Of all pairs of neighbours
 * it takes the one with the lowest rank (the one learnt first), merges it wherever it occurs, from
 * left to right, and repeats this until no pair merges. */
static size_t merge(const Vocabulary *vocabulary, int *token, size_t count) {
    for (;;) {
        int lowest = NO_RANK, left = 0, right = 0;
        for (size_t i = 0; i + 1 < count; i++) {
            const int rank = vocabulary_rank(vocabulary, token[i], token[i + 1]);
            if (rank >= lowest) continue;
            lowest = rank;
            left = token[i];
            right = token[i + 1];
        }
        if (lowest == NO_RANK) return count;
        size_t kept = 0;
        for (size_t i = 0; i < count; i++) {
            const bool merges = i + 1 < count && token[i] == left && token[i + 1] == right;
            token[kept++] = merges ? 256 + lowest : token[i];
            i += merges;
        }
        count = kept;
    }
}

static void append_word(void *context, const char *word, size_t bytes) {
    Output *output = context;
    int *token = output->tokens + output->count;
    for (size_t i = 0; i < bytes; i++)
        token[i] = output->vocabulary->of_byte[(unsigned char)word[i]];
    output->count += merge(output->vocabulary, token, bytes);
}

static const char *gpt2_decode(const Tokenizer *tokenizer, int token, size_t *bytes) {
    const Vocabulary *vocabulary = &((const Gpt2 *)tokenizer)->vocabulary;
    *bytes = 0;
    if (token < 0 || token >= vocabulary->size) return "";
    *bytes = vocabulary->start[token + 1] - vocabulary->start[token];
    return vocabulary->bytes + vocabulary->start[token];
}

/* Returns where "<|endoftext|>", of *length bytes, begins in text[bytes], or `bytes`. */
static size_t find_end(const Tokenizer *tokenizer, const char *text, size_t bytes, size_t *length) {
    const char *end = gpt2_decode(tokenizer, tokenizer->end_of_text, length), *at = text;
    while (*length && (at = memchr(at, *end, bytes - (size_t)(at - text)))) {
        const size_t begin = (size_t)(at++ - text);
        if (bytes - begin >= *length && memcmp(text + begin, end, *length) == 0) return begin;
    }
    return bytes;
}

static int gpt2_encode(const Tokenizer *tokenizer, const char *text, size_t bytes, int **tokens,
                       size_t *count) {
    const Gpt2 *gpt2 = (const Gpt2 *)tokenizer;
    /* A word has at most as many tokens as bytes. */
    int *grown = realloc(*tokens, (*count + bytes + 1) * sizeof *grown);
    if (!grown) return error_set("gpt2: no memory for %zu tokens", *count + bytes);
    *tokens = grown;
    Output output = {&gpt2->vocabulary, grown, *count};
    for (size_t at = 0; at < bytes;) {
        size_t end;
        const size_t part = find_end(tokenizer, text + at, bytes - at, &end);
        if (pretokenize(gpt2->pretokenizer, text + at, part, append_word, &output)) return -1;
        at += part;
        if (at == bytes) break;
        grown[output.count++] = tokenizer->end_of_text;
        at += end;
    }
    *count = output.count;
    return 0;
}

static void gpt2_free(Tokenizer *tokenizer) {
    Gpt2 *gpt2 = (Gpt2 *)tokenizer;
    vocabulary_free(&gpt2->vocabulary);
    pretokenizer_free(gpt2->pretokenizer);
    free(gpt2);
}

Tokenizer *tokenizer_gpt2_parse(const char *merges, size_t bytes, const char *dir) {
    Gpt2 *gpt2 = calloc(1, sizeof *gpt2);
    if (!gpt2) return error_null("gpt2: out of memory");
    gpt2->base = (Tokenizer){.encode = gpt2_encode, .decode = gpt2_decode, .free = gpt2_free};
    gpt2->pretokenizer = pretokenizer_create();
    if (!gpt2->pretokenizer || vocabulary_parse(&gpt2->vocabulary, merges, bytes, dir)) {
        gpt2_free(&gpt2->base);
        return NULL;
    }
    gpt2->base.name = "gpt2";
    gpt2->base.vocabulary = gpt2->vocabulary.size;
    gpt2->base.end_of_text = gpt2->vocabulary.end_of_text;
    return &gpt2->base;
}

static int shorten(Tokenizer *tokenizer, int vocabulary) {
    Gpt2 *gpt2 = (Gpt2 *)tokenizer;
    if (vocabulary_shorten(&gpt2->vocabulary, vocabulary)) return -1;
    snprintf(gpt2->name, sizeof gpt2->name, "gpt2:%d", vocabulary);
    tokenizer->name = gpt2->name;
    tokenizer->vocabulary = vocabulary;
    tokenizer->end_of_text = -1;
    return 0;
}

Tokenizer *tokenizer_gpt2(const char *dir, int vocabulary) {
    char path[PATH_BYTES];
    size_t bytes;
    if (path_join(path, dir, "vocab.bpe")) return NULL;
    char *merges = (char *)file_read_set("gpt2", path, &bytes);
    Tokenizer *tokenizer = merges ? tokenizer_gpt2_parse(merges, bytes, dir) : NULL;
    free(merges);
    if (tokenizer && vocabulary && shorten(tokenizer, vocabulary)) {
        tokenizer_free(tokenizer);
        return NULL;
    }
    return tokenizer;
}
