/* Byte-pair encoding of a word.  Sennrich, Haddow, Birch 2016; Radford et al. 2019.
 *
 * The tokens are a linked list, so that a merge touches only its neighbours.  The pairs are in a
 * heap, ordered by rank and then from left to right.  When a merge changes a neighbouring pair, the
 * new pair is queued, and the old entry stays in the heap.  It is skipped when it reaches the top,
 * because the rank at its place is another by then; the old one cannot return, since tokens only
 * grow. */
#include "merges.h"

#include <stdbool.h>
#include <stdlib.h>

#include "../ref/error.h"

#define NOWHERE UINT32_MAX

static uint64_t entry_of(int rank, uint32_t place) { return (uint64_t)rank << 32 | place; }
static int entry_rank(uint64_t entry) { return (int)(entry >> 32); }
static uint32_t entry_place(uint64_t entry) { return (uint32_t)entry; }

/* ---- the heap: no entry is less than the one at (i - 1) / 2 ---- */

static void queue_put(Merger *m, uint64_t entry) {
    size_t i = m->queued++;
    for (; i > 0 && m->queue[(i - 1) / 2] > entry; i = (i - 1) / 2)
        m->queue[i] = m->queue[(i - 1) / 2];
    m->queue[i] = entry;
}

/* Sifts an entry down from place i of the heap. */
static void sink(Merger *m, size_t i, uint64_t entry) {
    for (size_t child; (child = 2 * i + 1) < m->queued; i = child) {
        child += child + 1 < m->queued && m->queue[child + 1] < m->queue[child];
        if (entry <= m->queue[child]) break;
        m->queue[i] = m->queue[child];
    }
    m->queue[i] = entry;
}

static uint64_t queue_take(Merger *m) {
    const uint64_t first = m->queue[0], last = m->queue[--m->queued];
    if (m->queued) sink(m, 0, last);
    return first;
}

/* ---- the word ---- */

static void start_word(Merger *m, const Vocabulary *vocabulary, const char *word, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i++)
        m->piece[i] = (WordPiece){.token = vocabulary->of_byte[(unsigned char)word[i]],
                                  .rank = NO_RANK,
                                  .before = i - 1, /* NOWHERE of the first */
                                  .after = i + 1 < bytes ? i + 1 : NOWHERE};
    m->queued = 0;
    for (uint32_t i = 0; i + 1 < bytes; i++) {
        WordPiece *p = &m->piece[i];
        p->rank = vocabulary_rank(vocabulary, p->token, p[1].token);
        if (p->rank != NO_RANK) m->queue[m->queued++] = entry_of(p->rank, i);
    }
    for (size_t i = m->queued / 2; i-- > 0;) sink(m, i, m->queue[i]);
}

/* Updates the rank of the pair that begins at `left`, and queues it if it can merge. */
static void pair_again(Merger *m, const Vocabulary *vocabulary, uint32_t left) {
    WordPiece *p = &m->piece[left];
    p->rank = p->after == NOWHERE ? NO_RANK
                                  : vocabulary_rank(vocabulary, p->token, m->piece[p->after].token);
    if (p->rank != NO_RANK) queue_put(m, entry_of(p->rank, left));
}

static void merge_at(Merger *m, const Vocabulary *vocabulary, uint32_t left) {
    WordPiece *p = &m->piece[left], *right = &m->piece[p->after];
    p->token = vocabulary->merged[p->rank];
    p->after = right->after;
    right->rank = NO_RANK;
    if (p->after != NOWHERE) m->piece[p->after].before = left;
    if (p->before != NOWHERE) pair_again(m, vocabulary, p->before);
    pair_again(m, vocabulary, left);
}

/* Merges all pairs of the lowest rank in the queue.  They are all taken out before the first of
 * them merges, because a merge may make a pair of lower rank, which must not come between them. */
static void merge_first(Merger *m, const Vocabulary *vocabulary) {
    const int rank = entry_rank(m->queue[0]);
    size_t count = 0;
    while (m->queued && entry_rank(m->queue[0]) == rank) {
        const uint32_t left = entry_place(queue_take(m));
        if (m->piece[left].rank == rank) m->merging[count++] = left;
    }
    for (size_t i = 0; i < count; i++) /* unless the merge before took this pair's left token */
        if (m->piece[m->merging[i]].rank == rank) merge_at(m, vocabulary, m->merging[i]);
}

/* ---- capacity ---- */

void merger_free(Merger *m) {
    free(m->piece);
    free(m->queue);
    free(m->merging);
    free(m->tokens);
    *m = (Merger){0};
}

static int reserve(Merger *m, size_t bytes) {
    if (bytes <= m->capacity) return 0;
    if (bytes >= NOWHERE) return error_set("gpt2: a word of %zu bytes; at most 4 GiB", bytes);
    const size_t capacity = bytes + bytes / 2 + 64;
    merger_free(m);
    m->piece = malloc(capacity * sizeof *m->piece);
    m->queue = malloc(2 * capacity * sizeof *m->queue); /* each merge adds one */
    m->merging = malloc(capacity * sizeof *m->merging);
    m->tokens = malloc(capacity * sizeof *m->tokens);
    if (m->piece && m->queue && m->merging && m->tokens) {
        m->capacity = capacity;
        return 0;
    }
    merger_free(m);
    return error_set("gpt2: no memory for a word of %zu bytes", bytes);
}

int merge_word(Merger *m, const Vocabulary *vocabulary, const char *word, size_t bytes,
               size_t *count) {
    if (reserve(m, bytes)) return -1;
    start_word(m, vocabulary, word, (uint32_t)bytes);
    while (m->queued) merge_first(m, vocabulary);
    *count = 0;
    for (uint32_t i = 0; i != NOWHERE; i = m->piece[i].after)
        m->tokens[(*count)++] = m->piece[i].token;
    return 0;
}
