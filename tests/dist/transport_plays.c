#include "transport_plays.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "../../ref/random.h"

/* ---- messages ----------------------------------------------------------------------------------
 */

static int above(const Link *link) { return (link->rank + 1) % link->ranks; }
static int below(const Link *link) { return (link->rank + link->ranks - 1) % link->ranks; }

static int swap(Link *link, double *seen) {
    int up = above(link), down = below(link);
    for (int round = 0; round < 50; round++) {
        double mine = 100 * link->rank + round, from_up = -1, from_down = -1;
        Transfer batch[4] = {
            link_send(up, CHANNEL_VALUES, &mine, sizeof mine),
            link_send(down, CHANNEL_GRADIENTS, &mine, sizeof mine),
            link_receive(up, CHANNEL_GRADIENTS, &from_up, sizeof mine),
            link_receive(down, CHANNEL_VALUES, &from_down, sizeof mine),
        };
        if (link->is->exchange(link, batch, 4)) return -1;
        seen[0] += from_up != 100 * up + round;
        seen[1] += from_down != 100 * down + round;
    }
    return 0;
}

static int order(Link *link, double *seen) {
    double buffer[3][40] = {{0}};
    if (link->rank > 1) return 0;
    for (int round = 0; round < 12; round += 3) {
        Transfer batch[3];
        for (int i = 0; i < 3; i++) {
            size_t length = (size_t)(round + i + 1);
            for (size_t k = 0; k < length && link->rank == 0; k++) buffer[i][k] = round + i;
            batch[i] = (Transfer){link->rank == 0, 1 - link->rank,          CHANNEL_VALUES,
                                  buffer[i],       length * sizeof(double), NULL};
        }
        if (link->is->exchange(link, batch, 3)) return -1;
        for (int i = 0; i < 3; i++) seen[round + i] = buffer[i][round + i];
    }
    return 0;
}

enum { AHEAD = 3, AHEAD_COUNT = 20000 };

static int one(Link *link, Transfer t) { return link->is->exchange(link, &t, 1); }

static int ahead(Link *link, double *seen) {
    size_t bytes = AHEAD_COUNT * sizeof(double);
    double *x = malloc(bytes);
    int up = above(link), down = below(link), failed = x ? 0 : error_set("out of memory");
    for (int i = 0; i < AHEAD && !failed; i++) {
        for (size_t k = 0; k < AHEAD_COUNT; k++) x[k] = 1000 * link->rank + i;
        failed = one(link, link_send(up, CHANNEL_VALUES, x, bytes)) ||
                 one(link, link_send(down, CHANNEL_GRADIENTS, x, bytes));
    }
    for (int i = 0; i < 2 * AHEAD && !failed; i++) {
        int peer = i % 2 ? up : down;
        failed =
            one(link, link_receive(peer, i % 2 ? CHANNEL_GRADIENTS : CHANNEL_VALUES, x, bytes));
        for (size_t k = 0; k < AHEAD_COUNT; k++) seen[0] += x[k] != 1000 * peer + i / 2;
    }
    free(x);
    return failed ? -1 : 0;
}

enum { MUCH = 40000004 };

static int much(Link *link, double *seen) {
    size_t count = MUCH / sizeof(int);
    int *mine = malloc(MUCH), *other = malloc(MUCH), peer = 1 - link->rank;
    int failed = mine && other ? 0 : error_set("out of memory");
    if (!failed && link->rank < 2) {
        for (size_t i = 0; i < count; i++) mine[i] = (int)i ^ link->rank;
        Transfer batch[4] = {
            link_send(peer, CHANNEL_VALUES, mine, MUCH),
            link_send(peer, CHANNEL_VALUES, mine, sizeof *mine),
            link_receive(peer, CHANNEL_VALUES, other, MUCH),
            link_receive(peer, CHANNEL_VALUES, mine, sizeof *mine),
        };
        failed = link->is->exchange(link, batch, 2) || link->is->exchange(link, batch + 2, 2);
        for (size_t i = 0; i < count && !failed; i++) seen[0] += other[i] != ((int)i ^ peer);
        seen[0] += mine[0] != peer;
    }
    free(mine);
    free(other);
    return failed ? -1 : 0;
}

static int wrong_length(Link *link, double *seen) {
    Transfer t = link->rank == 0 ? link_send(1, CHANNEL_VALUES, seen, 16)
                                 : link_receive(0, CHANNEL_VALUES, seen, 8);
    return (link->rank < 2 && link->is->exchange(link, &t, 1)) || link_barrier(link) ? -1 : 0;
}

/* ---- all together -------------------------------------------------------------------------------
 */

double play_number(int rank, size_t i) {
    return random_uniform(7, (uint32_t)rank, i) * (rank == 1 ? 1e6 : 1);
}

static int sums(Link *link, double *seen) {
    real x[PLAY_SUMS];
    for (size_t i = 0; i < PLAY_SUMS; i++) x[i] = (real)play_number(link->rank, i);
    for (int round = 0; round < 20; round++)
        if (link_barrier(link)) return -1;
    if (link_all_reduce(link, x, PLAY_SUMS)) return -1;
    for (size_t i = 0; i < PLAY_SUMS; i++) seen[i] = (double)x[i];
    return 0;
}

static int broadcasts(Link *link, double *seen) {
    for (int root = 0; root < link->ranks; root++) {
        double data[3] = {link->rank, 10 * link->rank, -1};
        if (link_broadcast(link, root, data, sizeof data)) return -1;
        seen[root] = data[0] + data[1];
    }
    return 0;
}

/* More than one message holds: sums, then rank 0's sums to all. */
static int large(Link *link, double *seen) {
    enum { COUNT = 1000003, SMALL = 1000 };
    int ranks = link->ranks, failed = 0;
    real *x = malloc(COUNT * sizeof *x);
    if (!x) return error_set("out of memory");
    for (int i = 0; i < COUNT; i++) x[i] = (real)((link->rank + 1) * (i % SMALL));
    failed = link_all_reduce(link, x, COUNT);
    for (int i = 0; i < COUNT && !failed; i++) {
        int sum = ranks * (ranks + 1) / 2 * (i % SMALL);
        seen[0] += (int)x[i] != sum;
        if (link->rank) x[i] = -1;
    }
    failed = failed || link_broadcast(link, 0, x, COUNT * sizeof *x);
    for (int i = 0; i < COUNT && !failed; i++)
        seen[1] += (int)x[i] != ranks * (ranks + 1) / 2 * (i % SMALL);
    free(x);
    return failed ? -1 : 0;
}

static int groups(Link *link, double *seen) {
    int member[PLAY_SEEN], members = 0;
    for (int r = link->rank % 2; r < link->ranks; r += 2) member[members++] = r;
    Link *group = link_group(link, member, members);
    if (!group) return -1;
    real sum = (real)(link->rank + 1);
    double from = -1, own = link->rank;
    Transfer batch[2] = {link_send(above(group), CHANNEL_VALUES, &own, sizeof own),
                         link_receive(below(group), CHANNEL_VALUES, &from, sizeof from)};
    int failed = link_all_reduce(group, &sum, 1) || group->is->exchange(group, batch, 2);
    group->is->free(group);
    seen[0] = (double)sum;
    seen[1] = from;
    return failed || link_barrier(link) ? -1 : 0;
}

/* ---- ranks that are gone ------------------------------------------------------------------------
 */

static int leave(Link *link, double *seen) {
    (void)seen;
    return link->rank == 2 ? 0 : link_barrier(link);
}

static int leave_chain(Link *link, double *seen) {
    Transfer t = link_receive(2, CHANNEL_VALUES, seen, sizeof *seen);
    if (link->rank == 2) return 0;
    return link->rank == 1 ? link->is->exchange(link, &t, 1) : link_barrier(link);
}

static int give_up(Link *link, double *seen) {
    (void)seen;
    if (link->rank == 2) link->is->give_up(link, "bcd: the loss is nan");
    return link->rank == 2 ? 0 : link_barrier(link);
}

static int kill_rank_2(Link *link, double *seen) {
    if (link->rank == 2) raise(SIGKILL);
    return leave_chain(link, seen);
}

static int stop_rank_2(Link *link, double *seen) {
    if (link->rank == 2) raise(SIGSTOP);
    return leave_chain(link, seen);
}

const PlayRow *play_find(const char *name) {
    static const PlayRow plays[] = {
        {"swap", swap},
        {"order", order},
        {"ahead", ahead},
        {"much", much},
        {"wrong-length", wrong_length},
        {"sums", sums},
        {"broadcasts", broadcasts},
        {"large", large},
        {"groups", groups},
        {"leave", leave},
        {"leave-chain", leave_chain},
        {"give-up", give_up},
        {"kill", kill_rank_2},
        {"stop", stop_rank_2},
    };
    for (size_t i = 0; i < sizeof plays / sizeof *plays; i++)
        if (strcmp(plays[i].name, name) == 0) return &plays[i];
    return NULL;
}
