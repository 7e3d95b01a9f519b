/* What all ranks do together, out of messages: so that every kind of link does it alike, and adds
 * up in the same order.  Every rank talks to every other directly, which suits the few ranks of a
 * pipeline. */
#include "transport.h"

#include <stdlib.h>
#include <string.h>

#include "../ref/error.h"

/* Large data go in messages of this size: fast, for a cache holds them, and links need little
 * memory for what is on its way. */
enum { PIECE_BYTES = 1 << 20 };

/* A batch of one send and one receive for every other rank. */
static Transfer *batch_create(const Link *link) {
    Transfer *batch = calloc(2 * (size_t)link->ranks, sizeof *batch);
    if (!batch) error_set("link: out of memory for %d ranks", link->ranks);
    return batch;
}

static void add(Transfer *batch, int *count, bool send, int peer, void *data, size_t bytes) {
    if (!bytes) return;
    Transfer t = send ? link_send(peer, CHANNEL_TOGETHER, data, bytes)
                      : link_receive(peer, CHANNEL_TOGETHER, data, bytes);
    batch[(*count)++] = t;
}

int link_gather(Link *link, void *all, const void *mine, size_t bytes) {
    Transfer *batch = batch_create(link);
    if (!batch) return -1;
    char *place = all;
    int count = 0;
    if (bytes) memmove(place + (size_t)link->rank * bytes, mine, bytes);
    for (int r = 0; r < link->ranks; r++) {
        if (r == link->rank) continue;
        add(batch, &count, true, r, place + (size_t)link->rank * bytes, bytes);
        add(batch, &count, false, r, place + (size_t)r * bytes, bytes);
    }
    int failed = link->is->exchange(link, batch, count);
    free(batch);
    return failed;
}

int link_barrier(Link *link) {
    char here = 0, *all = malloc((size_t)link->ranks);
    if (!all) return error_set("link: out of memory for %d ranks", link->ranks);
    int failed = link_gather(link, all, &here, 1);
    free(all);
    return failed;
}

int link_broadcast(Link *link, int root, void *data, size_t bytes) {
    Transfer *batch = batch_create(link);
    int failed = batch ? 0 : -1;
    for (size_t at = 0; at < bytes && !failed; at += PIECE_BYTES) {
        char *piece = (char *)data + at;
        size_t size = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        int count = 0;
        if (link->rank != root) add(batch, &count, false, root, piece, size);
        for (int r = 0; link->rank == root && r < link->ranks; r++)
            if (r != root) add(batch, &count, true, r, piece, size);
        failed = link->is->exchange(link, batch, count);
    }
    free(batch);
    return failed;
}

/* ---- adding up ----------------------------------------------------------------------------------
 */

/* The numbers that rank r adds up: share_first(r) .. share_first(r + 1). */
static size_t share_first(const Link *link, size_t count, int r) {
    return count / (size_t)link->ranks * (size_t)r +
           count % (size_t)link->ranks * (size_t)r / (size_t)link->ranks;
}

static size_t share_bytes(const Link *link, size_t count, int r) {
    return (share_first(link, count, r + 1) - share_first(link, count, r)) * sizeof(real);
}

/* part[ranks][share] = every rank's numbers of this rank's share. */
static int collect_share(Link *link, Transfer *batch, real *part, real *x, size_t count) {
    size_t mine = share_bytes(link, count, link->rank);
    int transfers = 0;
    for (int r = 0; r < link->ranks; r++) {
        real *place = part + (size_t)r * (mine / sizeof(real));
        if (r == link->rank) {
            memcpy(place, x + share_first(link, count, r), mine);
            continue;
        }
        add(batch, &transfers, true, r, x + share_first(link, count, r),
            share_bytes(link, count, r));
        add(batch, &transfers, false, r, place, mine);
    }
    return link->is->exchange(link, batch, transfers);
}

/* Every rank's sums to all. */
static int spread_sums(Link *link, Transfer *batch, real *x, size_t count) {
    int transfers = 0;
    for (int r = 0; r < link->ranks; r++) {
        if (r == link->rank) continue;
        add(batch, &transfers, true, r, x + share_first(link, count, link->rank),
            share_bytes(link, count, link->rank));
        add(batch, &transfers, false, r, x + share_first(link, count, r),
            share_bytes(link, count, r));
    }
    return link->is->exchange(link, batch, transfers);
}

static int add_up(Link *link, Transfer *batch, real *part, real *x, size_t count) {
    size_t share = share_bytes(link, count, link->rank) / sizeof(real);
    real *sum = x + share_first(link, count, link->rank);
    if (collect_share(link, batch, part, x, count)) return -1;
    for (size_t i = 0; i < share; i++) {
        sum[i] = part[i];
        for (size_t r = 1; r < (size_t)link->ranks; r++) sum[i] += part[r * share + i];
    }
    return spread_sums(link, batch, x, count);
}

int link_all_reduce(Link *link, real *x, size_t count) {
    size_t most = PIECE_BYTES / sizeof *x * (size_t)link->ranks;
    if (most > count) most = count;
    real *part = malloc((most + (size_t)link->ranks) * sizeof *part);
    Transfer *batch = batch_create(link);
    int failed = part && batch ? 0 : error_set("link: out of memory to add up %zu numbers", count);
    for (size_t at = 0; at < count && !failed; at += most)
        failed = add_up(link, batch, part, x + at, count - at < most ? count - at : most);
    free(part);
    free(batch);
    return failed ? -1 : 0;
}

/* ---- groups -------------------------------------------------------------------------------------
 */

typedef struct {
    Link base;
    Link *whole;
    int member[];
} Group;

static int group_exchange(Link *link, Transfer *transfers, int count) {
    const Group *g = (const Group *)(const void *)link;
    for (int i = 0; i < count; i++) transfers[i].peer = g->member[transfers[i].peer];
    return g->whole->is->exchange(g->whole, transfers, count);
}

static void group_give_up(Link *link, const char *why) {
    Link *whole = ((Group *)(void *)link)->whole;
    whole->is->give_up(whole, why);
}

static void group_free(Link *link) { free(link); }

Link *link_group(Link *whole, const int *member, int members) {
    static const LinkClass class = {
        .exchange = group_exchange, .give_up = group_give_up, .free = group_free};
    Group *g = malloc(sizeof *g + (size_t)members * sizeof *g->member);
    if (!g) {
        error_set("link: out of memory for %d ranks", members);
        return NULL;
    }
    *g = (Group){.base = *whole, .whole = whole};
    g->base.is = &class;
    g->base.ranks = members;
    for (int i = 0; i < members; i++) {
        g->member[i] = member[i];
        if (member[i] == whole->rank) g->base.rank = i;
    }
    return &g->base;
}
