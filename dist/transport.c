/* Collectives made of messages, so that they are the same on every transport and add up in the same
 * order.  Every rank sends to every other directly, which is fine for the few ranks of a
 * pipeline. */
#include "transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/base/error.h"

/* Large data are sent in messages of this size, which fit into a cache, and of which transports can
 * hold several without much memory. */
enum { PIECE_BYTES = 1 << 20 };

/* Allocates for every rank.  The others wait for this one in a collective, so it tells them if it
 * has no memory. */
static void *for_ranks(Transport *transport, size_t bytes) {
    void *made = calloc((size_t)transport->ranks, bytes);
    if (made) return made;
    error_set("transport: out of memory for %d ranks", transport->ranks);
    transport_abort(transport, error_message());
    return NULL;
}

/* Allocates a batch with room for a send and a receive for every rank. */
static Transfer *batch_create(Transport *transport) {
    return for_ranks(transport, 2 * sizeof(Transfer));
}

static void add(Transfer *batch, int *count, bool send, int peer, void *data, size_t bytes) {
    if (bytes) batch[(*count)++] = (Transfer){send, peer, CHANNEL_COLLECTIVE, data, bytes, NULL};
}

/* Returns the first of `count` elements that belong to rank r; those of rank r + 1 follow its. */
static size_t share_first(const Transport *transport, size_t count, int r) {
    return count / (size_t)transport->ranks * (size_t)r +
           count % (size_t)transport->ranks * (size_t)r / (size_t)transport->ranks;
}

static size_t share_count(const Transport *transport, size_t count, int r) {
    return share_first(transport, count, r + 1) - share_first(transport, count, r);
}

/* Sends this rank's share of x, which has `count` elements of `size` bytes, to all others and
 * receives theirs. */
static int all_gather(Transport *transport, Transfer *batch, void *x, size_t count, size_t size) {
    char *mine = (char *)x + share_first(transport, count, transport->rank) * size;
    int transfers = 0;
    for (int r = 0; r < transport->ranks; r++) {
        if (r == transport->rank) continue;
        add(batch, &transfers, true, r, mine,
            share_count(transport, count, transport->rank) * size);
        add(batch, &transfers, false, r, (char *)x + share_first(transport, count, r) * size,
            share_count(transport, count, r) * size);
    }
    return transport_sendrecv(transport, batch, transfers);
}

int transport_all_gather(Transport *transport, void *all, const void *mine, size_t bytes) {
    Transfer *batch = batch_create(transport);
    if (!batch) return -1;
    if (bytes) memmove((char *)all + (size_t)transport->rank * bytes, mine, bytes);
    int failed = all_gather(transport, batch, all, (size_t)transport->ranks, bytes);
    free(batch);
    return failed;
}

int transport_barrier(Transport *transport) {
    Transfer *batch = batch_create(transport);
    char *here = batch ? for_ranks(transport, 1) : NULL;
    int failed = here ? all_gather(transport, batch, here, (size_t)transport->ranks, 1) : -1;
    free(here);
    free(batch);
    return failed;
}

int transport_broadcast(Transport *transport, int root, void *data, size_t bytes) {
    Transfer *batch = batch_create(transport);
    int failed = batch ? 0 : -1;
    for (size_t at = 0; at < bytes && !failed; at += PIECE_BYTES) {
        char *piece = (char *)data + at;
        size_t size = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        int count = 0;
        if (transport->rank != root) add(batch, &count, false, root, piece, size);
        for (int r = 0; transport->rank == root && r < transport->ranks; r++)
            if (r != root) add(batch, &count, true, r, piece, size);
        failed = transport_sendrecv(transport, batch, count);
    }
    free(batch);
    return failed;
}

/* Pieces are sent in batches: most need not wait for the answer to the one before, and few are in
 * memory on their way. */
int transport_move(Transport *transport, int from, int to, void *data, size_t bytes) {
    enum { BATCH = 16 };
    Transfer batch[BATCH];
    const bool send = transport->rank == from;
    int failed = 0;
    if (from == to || (!send && transport->rank != to)) return 0;
    for (size_t at = 0; at < bytes && !failed;) {
        int count = 0;
        for (; at < bytes && count < BATCH; at += PIECE_BYTES)
            add(batch, &count, send, send ? to : from, (char *)data + at,
                bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES);
        failed = transport_sendrecv(transport, batch, count);
    }
    return failed;
}

/* ---- errors ---- */

int transport_whole_rank(const Transport *transport, int rank) {
    return transport->member ? transport->member[rank] : rank;
}

int transport_failed_rank(Transport *transport, int missing,
                          int (*waits_for)(Transport *transport, int rank)) {
    for (int hops = 0; hops < transport->ranks; hops++) {
        int next = waits_for(transport, missing);
        if (next < 0 || next == transport->rank) break;
        missing = next;
    }
    return missing;
}

int transport_timed_out(const Transport *transport, int failed_rank, const char *what) {
    return error_set("transport: rank %d waited %g s for rank %d (%s); it has died or hangs",
                     transport_whole_rank(transport, transport->rank), transport->timeout_s,
                     transport_whole_rank(transport, failed_rank), what);
}

int transport_still_busy(const Transport *transport, int busy_rank, const char *what,
                         double seconds) {
    return error_set(
        "transport: rank %d waited for rank %d (%s); it runs, but has not done so for %.4g s",
        transport_whole_rank(transport, transport->rank),
        transport_whole_rank(transport, busy_rank), what, seconds);
}

int transport_wrong_length(const Transport *transport, int peer, size_t sent, size_t expected) {
    const int from = transport_whole_rank(transport, peer);
    const int to = transport_whole_rank(transport, transport->rank);
    if (sent > expected)
        return error_set("transport: rank %d sent more than the %zu bytes that rank %d expects",
                         from, expected, to);
    return error_set("transport: rank %d sent %zu bytes where rank %d expects %zu", from, sent, to,
                     expected);
}

void transport_abort_line(AbortLine line, const Transport *transport, const char *why) {
    snprintf(line, sizeof(AbortLine), "transport: rank %d gave up: %s", transport->rank, why);
}

/* ---- all-reduce: a reduce-scatter, then an all-gather; each rank adds up one share ---- */

/* Overwrites this rank's share of x with its sum over all ranks, and part[ranks][share] with every
 * rank's elements of it. */
static int reduce_scatter(Transport *transport, Transfer *batch, real *part, real *x,
                          size_t count) {
    size_t share = share_count(transport, count, transport->rank);
    real *sum = x + share_first(transport, count, transport->rank);
    int transfers = 0;
    memcpy(part + (size_t)transport->rank * share, sum, share * sizeof *x);
    for (int r = 0; r < transport->ranks; r++) {
        if (r == transport->rank) continue;
        add(batch, &transfers, true, r, x + share_first(transport, count, r),
            share_count(transport, count, r) * sizeof *x);
        add(batch, &transfers, false, r, part + (size_t)r * share, share * sizeof *x);
    }
    if (transport_sendrecv(transport, batch, transfers)) return -1;
    for (size_t i = 0; i < share; i++) {
        sum[i] = part[i];
        for (size_t r = 1; r < (size_t)transport->ranks; r++) sum[i] += part[r * share + i];
    }
    return 0;
}

int transport_all_reduce(Transport *transport, real *x, size_t count) {
    size_t max = PIECE_BYTES / sizeof *x * (size_t)transport->ranks;
    if (max > count) max = count;
    real *part = malloc((max + (size_t)transport->ranks) * sizeof *part);
    Transfer *batch = batch_create(transport);
    int failed =
        part && batch ? 0 : error_set("transport: out of memory to add up %zu elements", count);
    for (size_t at = 0; at < count && !failed; at += max) {
        size_t some = count - at < max ? count - at : max;
        failed = reduce_scatter(transport, batch, part, x + at, some) ||
                 all_gather(transport, batch, x + at, some, sizeof *x);
    }
    free(part);
    free(batch);
    return failed ? -1 : 0;
}

/* ---- groups ---- */

typedef struct {
    Transport base;
    Transport *whole;
    int member[];
} GroupTransport;

/* Returns the rank in the group of a rank of the whole. */
static int group_rank(const GroupTransport *g, int rank) {
    int r = 0;
    while (g->member[r] != rank) r++;
    return r;
}

static int group_sendrecv(Transport *transport, Transfer *transfers, int count) {
    const GroupTransport *g = (const GroupTransport *)(const void *)transport;
    for (int i = 0; i < count; i++) transfers[i].peer = g->member[transfers[i].peer];
    const int failed = transport_sendrecv(g->whole, transfers, count);
    for (int i = 0; i < count; i++) transfers[i].peer = group_rank(g, transfers[i].peer);
    return failed;
}

static void group_abort(Transport *transport, const char *why) {
    Transport *whole = ((GroupTransport *)(void *)transport)->whole;
    transport_abort(whole, why);
}

static void group_free(Transport *transport) { free(transport); }

Transport *transport_group(Transport *whole, const int *member, int members) {
    static const TransportClass class = {
        .sendrecv = group_sendrecv, .abort = group_abort, .free = group_free};
    GroupTransport *g = malloc(sizeof *g + (size_t)members * sizeof *g->member);
    if (!g) return error_null("transport: out of memory for %d ranks", members);
    *g = (GroupTransport){.base = *whole, .whole = whole};
    g->base.is = &class;
    g->base.ranks = members;
    g->base.member = g->member;
    memcpy(g->member, member, (size_t)members * sizeof *member);
    g->base.rank = group_rank(g, whole->rank);
    return &g->base;
}
