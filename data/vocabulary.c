#include "vocabulary.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/error.h"
#include "checksum.h"

/* ---- bytes written as characters ---- */

static bool is_plain(int byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

/* Returns the byte that a character stands for, or -1. */
static int byte_of(int character) {
    if (character < 0x100) return is_plain(character) ? character : -1;
    int next = 0x100;
    for (int byte = 0; byte < 0x100; byte++)
        if (!is_plain(byte) && next++ == character) return byte;
    return -1;
}

int bytemap_decode(char *bytes, const char *text, size_t length) {
    int count = 0;
    for (size_t i = 0; i < length; i++) {
        int character = (unsigned char)text[i];
        if (character >= 0x80) {
            const int next = i + 1 < length ? (unsigned char)text[i + 1] : 0;
            if (character < 0xC2 || character > 0xDF || (next & 0xC0) != 0x80) return -1;
            character = (character & 0x1F) << 6 | (next & 0x3F);
            i++;
        }
        const int byte = byte_of(character);
        if (byte < 0) return -1;
        bytes[count++] = (char)byte;
    }
    return count;
}

/* ---- tokens by their bytes ---- */

/* A hash table of the tokens; only needed while the file is read. */
typedef struct {
    int *slot; /* token, or -1 */
    uint32_t slots;
} Index;

/* Returns a power of two that is at least twice the number of entries, which keeps probing
 * short. */
static uint32_t slots_for(int entries) {
    uint32_t slots = 16;
    while (slots < 2 * (uint32_t)entries) slots *= 2;
    return slots;
}

/* Returns the slot of the token with these bytes, or the empty slot where it would be. */
static uint32_t index_find(const Index *index, const Vocabulary *vocabulary, const char *bytes,
                           size_t count) {
    uint64_t sum = checksum_bytes(CHECKSUM_START, (const unsigned char *)bytes, count);
    uint32_t at = (uint32_t)(sum ^ sum >> 32) & (index->slots - 1);
    for (;; at = (at + 1) & (index->slots - 1)) {
        const int token = index->slot[at];
        if (token < 0) return at;
        const size_t start = vocabulary->start[token], end = vocabulary->start[token + 1];
        if (end - start == count && memcmp(vocabulary->bytes + start, bytes, count) == 0) return at;
    }
}

/* Returns where the bytes of the next token go. */
static char *next_bytes(const Vocabulary *vocabulary) {
    return vocabulary->bytes + vocabulary->start[vocabulary->size];
}

/* Numbers the token of `count` bytes at next_bytes. */
static void add_token(Vocabulary *vocabulary, size_t count) {
    vocabulary->size++;
    vocabulary->start[vocabulary->size] = vocabulary->start[vocabulary->size - 1] + count;
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

/* Allocates what a file of so many bytes and lines needs. */
static int allocate(Vocabulary *vocabulary, Index *index, size_t bytes, int lines) {
    const int tokens = 256 + lines + 1;
    vocabulary->bytes = malloc(256 + bytes + sizeof end_of_text);
    vocabulary->start = calloc((size_t)tokens + 1, sizeof *vocabulary->start);
    vocabulary->pair_slots = slots_for(lines);
    vocabulary->pairs = malloc(vocabulary->pair_slots * sizeof *vocabulary->pairs);
    index->slots = slots_for(tokens);
    index->slot = malloc(index->slots * sizeof *index->slot);
    if (!vocabulary->bytes || !vocabulary->start || !vocabulary->pairs || !index->slot)
        return error_set("gpt2: no memory for the vocabulary");
    memset(index->slot, -1, index->slots * sizeof *index->slot);
    for (uint32_t i = 0; i < vocabulary->pair_slots; i++)
        vocabulary->pairs[i] = (MergePair){-1, -1, NO_RANK};
    return 0;
}

/* Adds the tokens of single bytes, in the order of the characters that stand for them. */
static void add_bytes(Vocabulary *vocabulary, Index *index) {
    for (int character = 0; vocabulary->size < 256; character++) {
        const int byte = byte_of(character);
        if (byte < 0) continue;
        char *bytes = next_bytes(vocabulary);
        *bytes = (char)byte;
        vocabulary->of_byte[byte] = vocabulary->size;
        index->slot[index_find(index, vocabulary, bytes, 1)] = vocabulary->size;
        add_token(vocabulary, 1);
    }
}

/* Overwrites bytes[*count] with those that text[length] stands for, and returns their token, or
 * -1. */
static int parse_token(char *bytes, size_t *count, const Vocabulary *vocabulary, const Index *index,
                       const char *text, size_t length) {
    const int decoded = bytemap_decode(bytes, text, length);
    *count = decoded > 0 ? (size_t)decoded : 0;
    return index->slot[index_find(index, vocabulary, bytes, *count)];
}

/* Adds the token that a line "left right" makes. */
static int parse_merge(Vocabulary *vocabulary, Index *index, const char *line, size_t length,
                       int number, const char *dir) {
    const char *space = memchr(line, ' ', length);
    char *bytes = next_bytes(vocabulary);
    size_t left_bytes = 0, right_bytes = 0;
    int left = -1, right = -1;
    if (space) {
        const size_t left_length = (size_t)(space - line);
        left = parse_token(bytes, &left_bytes, vocabulary, index, line, left_length);
        right = parse_token(bytes + left_bytes, &right_bytes, vocabulary, index, space + 1,
                            length - left_length - 1);
    }
    if (left < 0 || right < 0)
        return error_set("gpt2: %s/vocab.bpe: line %d is not two known tokens; get it again", dir,
                         number);
    const uint32_t slot = index_find(index, vocabulary, bytes, left_bytes + right_bytes);
    if (index->slot[slot] >= 0)
        return error_set("gpt2: %s/vocab.bpe: line %d repeats an earlier one; get it again", dir,
                         number);
    index->slot[slot] = vocabulary->size;
    vocabulary->pairs[pair_slot(vocabulary, left, right)] =
        (MergePair){left, right, vocabulary->merges++};
    add_token(vocabulary, left_bytes + right_bytes);
    return 0;
}

static int parse_lines(Vocabulary *vocabulary, Index *index, const char *text, size_t bytes,
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
        if (number > 1 && parse_merge(vocabulary, index, text, length, number, dir)) return -1;
        text = next + 1;
    }
    return 0;
}

int vocabulary_parse(Vocabulary *vocabulary, const char *text, size_t bytes, const char *dir) {
    Index index = {NULL, 0};
    int lines = 0;
    for (size_t i = 0; i < bytes; i++) lines += text[i] == '\n';
    memset(vocabulary, 0, sizeof *vocabulary);
    int failed = allocate(vocabulary, &index, bytes, lines);
    if (!failed) {
        add_bytes(vocabulary, &index);
        failed = parse_lines(vocabulary, &index, text, bytes, dir);
    }
    if (!failed) {
        memcpy(next_bytes(vocabulary), end_of_text, sizeof end_of_text - 1);
        vocabulary->end_of_text = vocabulary->size;
        add_token(vocabulary, sizeof end_of_text - 1);
    }
    free(index.slot);
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
