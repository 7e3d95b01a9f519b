/* The merges of random words, with random vocabularies and the real one, against a simple
 * algorithm. */
#include <stdlib.h>
#include <string.h>

#include "../../data/file.h"
#include "../../data/merges.h"
#include "../../ref/random.h"
#include "scratch.h"
#include "tiny.h"

/* The published algorithm: finds the lowest rank of all pairs of neighbours, merges these pairs
 * from left to right, and repeats this.  Overwrites token[bytes] and returns the number of tokens.
 */
static size_t merge_simply(const Vocabulary *v, int *token, const char *word, size_t bytes) {
    size_t count = bytes;
    for (size_t i = 0; i < bytes; i++) token[i] = v->of_byte[(unsigned char)word[i]];
    for (;;) {
        int first = NO_RANK;
        for (size_t i = 0; i + 1 < count; i++) {
            const int rank = vocabulary_rank(v, token[i], token[i + 1]);
            if (rank < first) first = rank;
        }
        if (first == NO_RANK) return count;
        size_t kept = 0;
        for (size_t i = 0; i < count; i++) {
            const bool here = i + 1 < count && vocabulary_rank(v, token[i], token[i + 1]) == first;
            token[kept++] = here ? v->merged[first] : token[i];
            i += here;
        }
        count = kept;
    }
}

static void check_word(Merger *merger, const Vocabulary *vocabulary, const char *word,
                       size_t bytes) {
    int *simple = malloc(bytes * sizeof *simple);
    const size_t expected = merge_simply(vocabulary, simple, word, bytes);
    size_t count = 0;
    CHECK(merge_word(merger, vocabulary, word, bytes, &count) == 0, "%s", error_message());
    CHECK(count == expected && memcmp(merger->tokens, simple, count * sizeof *simple) == 0,
          "%zu bytes: other tokens than by the simple algorithm", bytes);
    free(simple);
}

/* A vocabulary of random merges over few letters, so that pairs overlap, tokens are made in several
 * ways, and a merge makes pairs that were learnt before it. */
static void random_vocabulary(Vocabulary *v, uint64_t seed) {
    enum { LETTERS = 3, MAX_MERGES = 60 };
    static char encoder[8192], merges[8192];
    char token[LETTERS + MAX_MERGES][64] = {"a", "b", "c"};
    char lines[MAX_MERGES][128];
    int tokens = LETTERS, made = 0;
    strcpy(encoder, "{");
    strcpy(merges, "#version: 0.2\n");
    for (int byte = 0; byte < 256; byte++)
        tiny_append(encoder, sizeof encoder, (char[]){(char)byte, 0}, byte);
    for (uint64_t draw = 0; made < MAX_MERGES && draw < 400; draw++) {
        const char *left = token[random_below(seed, 1, draw, (uint32_t)tokens)];
        const char *right = token[random_below(seed, 2, draw, (uint32_t)tokens)];
        if (strlen(left) + strlen(right) > 8) continue;
        char both[64], line[128];
        snprintf(both, sizeof both, "%s%s", left, right);
        snprintf(line, sizeof line, "%s %s\n", left, right);
        bool again = false, known = false;
        for (int i = 0; i < made; i++) again |= strcmp(lines[i], line) == 0;
        for (int i = 0; i < tokens; i++) known |= strcmp(token[i], both) == 0;
        if (again) continue;
        strcpy(lines[made++], line);
        strcat(merges, line);
        if (known) continue;
        tiny_append(encoder, sizeof encoder, both, 256 + tokens - LETTERS);
        strcpy(token[tokens++], both);
    }
    strcat(encoder, "}");
    CHECK(vocabulary_parse(v, encoder, strlen(encoder), merges, strlen(merges), "DIR") == 0, "%s",
          error_message());
}

static void random_words_merge_as_published(void) {
    enum { VOCABULARIES = 20, WORDS = 60, LONGEST = 400 };
    Merger merger = {0};
    for (uint64_t seed = 0; seed < VOCABULARIES; seed++) {
        Vocabulary vocabulary;
        random_vocabulary(&vocabulary, seed);
        for (uint64_t w = 0; w < WORDS; w++) {
            char word[LONGEST];
            const size_t bytes = 1 + random_below(seed, 3, w, w % 2 ? 12 : LONGEST);
            for (size_t i = 0; i < bytes; i++)
                word[i] = "abcd"[random_below(seed, 4 + (uint32_t)w, i, w % 8 ? 3 : 4)];
            check_word(&merger, &vocabulary, word, bytes);
        }
        vocabulary_free(&vocabulary);
    }
    merger_free(&merger);
}

static void random_bytes_merge_as_published(void) {
    enum { BYTES = 4000 };
    SKIP_WITHOUT("gpt2-bpe/vocab.bpe");
    size_t encoder_bytes, merges_bytes;
    char *encoder =
        (char *)file_read("test", real_file("gpt2-bpe/encoder.json"), "", &encoder_bytes);
    char *merges = (char *)file_read("test", real_file("gpt2-bpe/vocab.bpe"), "", &merges_bytes);
    Vocabulary vocabulary;
    Merger merger = {0};
    if (CHECK(encoder && merges, "%s", error_message()) &&
        CHECK(vocabulary_parse(&vocabulary, encoder, encoder_bytes, merges, merges_bytes, "") == 0,
              "%s", error_message())) {
        static const int kinds[][2] = {{0, 256}, {'a', 26}, {'a', 4}, {' ', 90}};
        for (int k = 0; k < 4; k++) {
            char word[BYTES];
            for (size_t i = 0; i < BYTES; i++)
                word[i] = (char)(kinds[k][0] +
                                 (int)random_below(1, (uint32_t)k, i, (uint32_t)kinds[k][1]));
            check_word(&merger, &vocabulary, word, BYTES);
        }
        vocabulary_free(&vocabulary);
    }
    merger_free(&merger);
    free(encoder);
    free(merges);
}

void test_data_merges(void) {
    RUN(random_words_merge_as_published);
    RUN(random_bytes_merge_as_published);
}
