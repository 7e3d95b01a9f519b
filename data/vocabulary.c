#define _GNU_SOURCE /* hsearch_r */
#include "vocabulary.h"

#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/base/error.h"

/* ---- pairs ---- */

/* Returns a power of two that is at least twice the number of entries, which keeps probing
 * short. */
static uint32_t slots_for(int entries) {
    uint32_t slots = 16;
    while (slots < 2 * (uint32_t)entries) slots *= 2;
    return slots;
}

static uint32_t pair_slot(const Vocabulary *vocabulary, int left, int right) {
    uint64_t key = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
    uint32_t at = (uint32_t)(key >> 32) & (vocabulary->pair_slots - 1);
    for (;; at = (at + 1) & (vocabulary->pair_slots - 1)) {
        const MergePair *pair = &vocabulary->pairs[at];
        if (pair->left < 0 || (pair->left == left && pair->right == right)) return at;
    }
}

int vocabulary_rank(const Vocabulary *vocabulary, int left, int right) {
    return vocabulary->pairs[pair_slot(vocabulary, left, right)].rank;
}

/* ---- the file ---- */

static const char end_of_text[] = "<|endoftext|>";

/* The names of all tokens, which is how the file writes them; only needed while it is read. */
typedef struct {
    struct hsearch_data table;
    char *text, *next; /* names with a zero byte behind each, and where the next one goes */
} Names;

/* Allocates what a file of so many bytes and lines needs. */
static int allocate(Vocabulary *vocabulary, Names *names, size_t bytes, int lines) {
    const size_t tokens = 256 + (size_t)lines + 1;
    vocabulary->bytes = malloc(256 + bytes + sizeof end_of_text);
    vocabulary->start = calloc(tokens + 1, sizeof *vocabulary->start);
    vocabulary->pair_slots = slots_for(lines);
    vocabulary->pairs = malloc(vocabulary->pair_slots * sizeof *vocabulary->pairs);
    names->text = names->next = malloc(3 * 256 + bytes + sizeof end_of_text);
    if (!vocabulary->bytes || !vocabulary->start || !vocabulary->pairs || !names->text ||
        !hcreate_r(2 * tokens, &names->table))
        return error_set("gpt2: no memory for the vocabulary");
    for (uint32_t i = 0; i < vocabulary->pair_slots; i++)
        vocabulary->pairs[i] = (MergePair){-1, -1, NO_RANK};
    return 0;
}

/* Returns the token of a name, or -1. */
static int find_token(Names *names, char *name) {
    ENTRY *found;
    const ENTRY key = {.key = name};
    return hsearch_r(key, FIND, &found, &names->table) ? (int)(intptr_t)found->data : -1;
}

/* Returns where the bytes of the next token go. */
static char *next_bytes(const Vocabulary *vocabulary) {
    return vocabulary->bytes + vocabulary->start[vocabulary->size];
}

/* Numbers the token whose name is at names->next and whose bytes are at next_bytes. */
static void add_token(Vocabulary *vocabulary, Names *names, size_t bytes) {
    ENTRY *added;
    const ENTRY entry = {names->next, (void *)(intptr_t)vocabulary->size};
    hsearch_r(entry, ENTER, &added, &names->table); /* there is room for all */
    names->next += strlen(names->next) + 1;
    vocabulary->size++;
    vocabulary->start[vocabulary->size] = vocabulary->start[vocabulary->size - 1] + bytes;
}

/* Adds the tokens of single bytes.  The file writes each as one character in UTF-8: itself if it is
 * printable in Latin-1, otherwise U+0100 and up, in order.  Tokens are in the order of these
 * characters. */
static void add_bytes(Vocabulary *vocabulary, Names *names) {
    int character = 0x100;
    for (int i = 0; i < 512; i++) {
        const int byte = i % 256;
        const bool printable =
            (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
        if (printable != (i < 256)) continue;
        const int written = printable ? byte : character++;
        if (written < 0x80)
            sprintf(names->next, "%c", written);
        else
            sprintf(names->next, "%c%c", 0xC0 | written >> 6, 0x80 | (written & 0x3F));
        *next_bytes(vocabulary) = (char)byte;
        vocabulary->of_byte[byte] = vocabulary->size;
        add_token(vocabulary, names, 1);
    }
}

/* Appends the bytes of a token to those at next_bytes, of which there are `count` already.  Returns
 * how many there are then. */
static size_t append_bytes(const Vocabulary *vocabulary, size_t count, int token) {
    const size_t start = vocabulary->start[token], bytes = vocabulary->start[token + 1] - start;
    memcpy(next_bytes(vocabulary) + count, vocabulary->bytes + start, bytes);
    return count + bytes;
}

/* Adds the token that a line "left right" makes. */
static int parse_merge(Vocabulary *vocabulary, Names *names, const char *line, size_t length,
                       int number, const char *dir) {
    char *name = memcpy(names->next, line, length), *space = memchr(name, ' ', length);
    int left = -1, right = -1;
    name[length] = 0;
    if (space && strlen(name) == length) {
        *space = 0;
        left = find_token(names, name);
        right = find_token(names, space + 1);
    }
    if (left < 0 || right < 0)
        return error_set("gpt2: %s/vocab.bpe: line %d is not two known tokens; get it again", dir,
                         number);
    memmove(space, space + 1, strlen(space + 1) + 1);
    if (find_token(names, name) >= 0)
        return error_set("gpt2: %s/vocab.bpe: line %d repeats an earlier one; get it again", dir,
                         number);
    vocabulary->pairs[pair_slot(vocabulary, left, right)] =
        (MergePair){left, right, vocabulary->merges++};
    const size_t bytes = append_bytes(vocabulary, 0, left);
    add_token(vocabulary, names, append_bytes(vocabulary, bytes, right));
    return 0;
}

static int parse_lines(Vocabulary *vocabulary, Names *names, const char *text, size_t bytes,
                       const char *dir) {
    static const char version[] = "#version";
    if (bytes < sizeof version - 1 || memcmp(text, version, sizeof version - 1) != 0)
        return error_set("gpt2: %s/vocab.bpe: does not begin with #version; get it again", dir);
    const char *end = text + bytes;
    for (int number = 1; text < end; number++) {
        const char *next = memchr(text, '\n', (size_t)(end - text));
        if (!next)
            return error_set("gpt2: %s/vocab.bpe: ends within line %d; get it again", dir, number);
        const size_t length = (size_t)(next - text);
        if (number > 1 && parse_merge(vocabulary, names, text, length, number, dir)) return -1;
        text = next + 1;
    }
    return 0;
}

int vocabulary_parse(Vocabulary *vocabulary, const char *text, size_t bytes, const char *dir) {
    Names names = {0};
    int lines = 0;
    for (size_t i = 0; i < bytes; i++) lines += text[i] == '\n';
    memset(vocabulary, 0, sizeof *vocabulary);
    int failed = allocate(vocabulary, &names, bytes, lines);
    if (!failed) {
        add_bytes(vocabulary, &names);
        failed = parse_lines(vocabulary, &names, text, bytes, dir);
    }
    if (!failed) {
        vocabulary->end_of_text = vocabulary->size;
        strcpy(names.next, end_of_text);
        memcpy(next_bytes(vocabulary), end_of_text, sizeof end_of_text);
        add_token(vocabulary, &names, strlen(end_of_text));
    }
    hdestroy_r(&names.table);
    free(names.text);
    if (failed) vocabulary_free(vocabulary);
    return failed ? -1 : 0;
}

int vocabulary_shorten(Vocabulary *vocabulary, int size) {
    const int merges = size - 256;
    if (merges < 0 || merges >= vocabulary->merges)
        return error_set("gpt2: %d tokens: a part of the vocabulary has 256 to %d", size,
                         255 + vocabulary->merges);
    vocabulary->size = size;
    vocabulary->merges = merges;
    vocabulary->end_of_text = -1;
    for (uint32_t i = 0; i < vocabulary->pair_slots; i++)
        if (vocabulary->pairs[i].rank >= merges) vocabulary->pairs[i].rank = NO_RANK;
    return 0;
}

void vocabulary_free(Vocabulary *vocabulary) {
    free(vocabulary->bytes);
    free(vocabulary->start);
    free(vocabulary->pairs);
    memset(vocabulary, 0, sizeof *vocabulary);
}
