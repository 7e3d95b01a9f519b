#include "vocabulary.h"

#include <cjson/cJSON.h>
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

/* A hash table of the tokens; only needed while the merges are read. */
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

static int index_get(const Index *index, const Vocabulary *vocabulary, const char *bytes,
                     size_t count) {
    return index->slot[index_find(index, vocabulary, bytes, count)];
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

/* Overwrites item[size] with the entries of the JSON object in the order of their numbers. */
static int order_tokens(const cJSON **item, int size, const cJSON *object, const char *dir) {
    const cJSON *entry;
    cJSON_ArrayForEach(entry, object) {
        const double number = cJSON_IsNumber(entry) ? entry->valuedouble : -1;
        if (!(number >= 0 && number < size) || number != (int)number)
            return error_set(
                "gpt2: %s/encoder.json: \"%s\" has no number from 0 to %d; get it again", dir,
                entry->string, size - 1);
        if (item[(int)number])
            return error_set(
                "gpt2: %s/encoder.json: \"%s\" and \"%s\" have the same number %d; get it again",
                dir, item[(int)number]->string, entry->string, (int)number);
        item[(int)number] = entry;
    }
    return 0;
}

static int load_tokens(Vocabulary *vocabulary, Index *index, const cJSON *const *item,
                       const char *dir) {
    size_t total = 0;
    for (int token = 0; token < vocabulary->size; token++) total += strlen(item[token]->string);
    vocabulary->bytes = malloc(total + 1);
    vocabulary->start = calloc((size_t)vocabulary->size + 1, sizeof *vocabulary->start);
    index->slots = slots_for(vocabulary->size);
    index->slot = malloc(index->slots * sizeof *index->slot);
    if (!vocabulary->bytes || !vocabulary->start || !index->slot)
        return error_set("gpt2: no memory for the vocabulary");
    memset(index->slot, -1, index->slots * sizeof *index->slot);
    for (int token = 0; token < vocabulary->size; token++) {
        const char *text = item[token]->string;
        char *bytes = vocabulary->bytes + vocabulary->start[token];
        const int count = bytemap_decode(bytes, text, strlen(text));
        if (count < 1)
            return error_set("gpt2: %s/encoder.json: \"%s\" stands for no bytes; get it again", dir,
                             text);
        const uint32_t at = index_find(index, vocabulary, bytes, (size_t)count);
        if (index->slot[at] >= 0)
            return error_set("gpt2: %s/encoder.json: \"%s\" appears twice; get it again", dir,
                             text);
        vocabulary->start[token + 1] = vocabulary->start[token] + (size_t)count;
        index->slot[at] = token;
    }
    return 0;
}

static int parse_encoder(Vocabulary *vocabulary, Index *index, const char *text, size_t bytes,
                         const char *dir) {
    cJSON *object = cJSON_ParseWithLength(text, bytes);
    vocabulary->size = cJSON_IsObject(object) ? cJSON_GetArraySize(object) : 0;
    const cJSON **item = calloc((size_t)vocabulary->size + 1, sizeof *item);
    int failed;
    if (vocabulary->size < 1)
        failed = error_set("gpt2: %s/encoder.json: not a JSON object of tokens; get it again", dir);
    else if (!item)
        failed = error_set("gpt2: no memory for the vocabulary");
    else
        failed = order_tokens(item, vocabulary->size, object, dir) ||
                 load_tokens(vocabulary, index, item, dir);
    free(item);
    cJSON_Delete(object);
    if (failed) return -1;
    for (int byte = 0; byte < 256; byte++) {
        const char one = (char)byte;
        vocabulary->of_byte[byte] = index_get(index, vocabulary, &one, 1);
        if (vocabulary->of_byte[byte] < 0)
            return error_set("gpt2: %s/encoder.json: no token for byte %d; get it again", dir,
                             byte);
    }
    static const char end_of_text[] = "<|endoftext|>";
    vocabulary->end_of_text = index_get(index, vocabulary, end_of_text, sizeof end_of_text - 1);
    return 0;
}

/* Parses one line "left right" of vocab.bpe; `joined` has room for the bytes of the line. */
static int parse_merge(Vocabulary *vocabulary, const Index *index, const char *line, size_t length,
                       char *joined, int number, const char *dir) {
    const char *space = memchr(line, ' ', length);
    const size_t left_length = space ? (size_t)(space - line) : 0;
    const int left_bytes = space ? bytemap_decode(joined, line, left_length) : -1;
    const int right_bytes =
        left_bytes < 1 ? -1
                       : bytemap_decode(joined + left_bytes, space + 1, length - left_length - 1);
    int left = -1, right = -1, merged = -1;
    if (right_bytes > 0) {
        left = index_get(index, vocabulary, joined, (size_t)left_bytes);
        right = index_get(index, vocabulary, joined + left_bytes, (size_t)right_bytes);
        merged = index_get(index, vocabulary, joined, (size_t)(left_bytes + right_bytes));
    }
    if (left < 0 || right < 0 || merged < 0)
        return error_set(
            "gpt2: %s/vocab.bpe: line %d is not two tokens that make a third; get it again", dir,
            number);
    MergePair *pair = &vocabulary->pairs[pair_slot(vocabulary, left, right)];
    if (pair->left >= 0)
        return error_set("gpt2: %s/vocab.bpe: line %d repeats an earlier one; get it again", dir,
                         number);
    *pair = (MergePair){left, right, vocabulary->merges};
    vocabulary->merged[vocabulary->merges++] = merged;
    return 0;
}

static int parse_merges(Vocabulary *vocabulary, const Index *index, const char *text, size_t bytes,
                        const char *dir) {
    static const char version[] = "#version";
    if (bytes < sizeof version - 1 || memcmp(text, version, sizeof version - 1) != 0)
        return error_set("gpt2: %s/vocab.bpe: does not begin with #version; get it again", dir);
    int lines = 0;
    for (size_t i = 0; i < bytes; i++) lines += text[i] == '\n';
    vocabulary->pair_slots = slots_for(lines);
    vocabulary->pairs = malloc(vocabulary->pair_slots * sizeof *vocabulary->pairs);
    vocabulary->merged = malloc(((size_t)lines + 1) * sizeof *vocabulary->merged);
    char *joined = malloc(bytes + 1);
    int failed = 0;
    if (!vocabulary->pairs || !vocabulary->merged || !joined)
        failed = error_set("gpt2: no memory for the merges");
    else
        for (uint32_t i = 0; i < vocabulary->pair_slots; i++)
            vocabulary->pairs[i] = (MergePair){-1, -1, NO_RANK};
    const char *line = memchr(text, '\n', bytes), *end = text + bytes;
    for (int number = 2; !failed && line && ++line < end; number++) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        if (!next)
            failed =
                error_set("gpt2: %s/vocab.bpe: ends within line %d; get it again", dir, number);
        else
            failed =
                parse_merge(vocabulary, index, line, (size_t)(next - line), joined, number, dir);
        line = next;
    }
    free(joined);
    return failed;
}

int vocabulary_parse(Vocabulary *vocabulary, const char *encoder, size_t encoder_bytes,
                     const char *merges, size_t merges_bytes, const char *dir) {
    Index index = {NULL, 0};
    memset(vocabulary, 0, sizeof *vocabulary);
    int failed = parse_encoder(vocabulary, &index, encoder, encoder_bytes, dir) ||
                 parse_merges(vocabulary, &index, merges, merges_bytes, dir);
    free(index.slot);
    if (failed) vocabulary_free(vocabulary);
    return failed ? -1 : 0;
}

/* Returns true if tokens are numbered as in GPT-2's files: bytes first, then the results of the
 * merges in their order. */
static bool in_order(const Vocabulary *vocabulary, int merges) {
    for (int byte = 0; byte < 256; byte++)
        if (vocabulary->of_byte[byte] > 255) return false;
    for (int rank = 0; rank < merges; rank++)
        if (vocabulary->merged[rank] != 256 + rank) return false;
    return true;
}

int vocabulary_shorten(Vocabulary *vocabulary, int size) {
    const int merges = size - 256;
    if (merges < 0 || merges >= vocabulary->merges)
        return error_set("gpt2: %d tokens: a part of the vocabulary has 256 to %d", size,
                         255 + vocabulary->merges);
    if (!in_order(vocabulary, merges))
        return error_set(
            "gpt2: the tokens are not in the order of their merges, so a part of them cannot be "
            "used");
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
    free(vocabulary->merged);
    free(vocabulary->pairs);
    memset(vocabulary, 0, sizeof *vocabulary);
}
