#include "transport_scenarios.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../ref/base/error.h"
#include "../../ref/base/random.h"

/* ---- messages ---- */

static int above(const Transport *transport) { return (transport->rank + 1) % transport->ranks; }
static int below(const Transport *transport) {
    return (transport->rank + transport->ranks - 1) % transport->ranks;
}

static int swap(Transport *transport, double *results) {
    int up = above(transport), down = below(transport);
    for (int round = 0; round < 50; round++) {
        double mine = 100 * transport->rank + round, from_up = -1, from_down = -1;
        Transfer batch[4] = {
            transport_receive(up, CHANNEL_GRADIENTS, &from_up, sizeof mine),
            transport_send(down, CHANNEL_GRADIENTS, &mine, sizeof mine),
            transport_receive(down, CHANNEL_VALUES, &from_down, sizeof mine),
            transport_send(up, CHANNEL_VALUES, &mine, sizeof mine),
        };
        int together = round % 2 ? 2 : 4;
        for (int i = 0; i < 4; i += together)
            if (transport_sendrecv(transport, batch + i, together)) return -1;
        results[0] += from_up != 100 * up + round;
        results[1] += from_down != 100 * down + round;
    }
    return 0;
}

static int order(Transport *transport, double *results) {
    double buffer[3][40] = {{0}};
    if (transport->rank > 1) return 0;
    for (int round = 0; round < 12; round += 3) {
        Transfer batch[3];
        for (int i = 0; i < 3; i++) {
            size_t length = (size_t)(round + i + 1);
            for (size_t k = 0; k < length && transport->rank == 0; k++) buffer[i][k] = round + i;
            batch[i] = (Transfer){transport->rank == 0,    1 - transport->rank,
                                  CHANNEL_VALUES,          buffer[i],
                                  length * sizeof(double), NULL};
        }
        if (transport_sendrecv(transport, batch, 3)) return -1;
        for (int i = 0; i < 3; i++) results[round + i] = buffer[i][round + i];
    }
    return 0;
}

enum { AHEAD = 3, AHEAD_COUNT = 20000 };

static int one(Transport *transport, Transfer t) { return transport_sendrecv(transport, &t, 1); }

static int ahead(Transport *transport, double *results) {
    size_t bytes = AHEAD_COUNT * sizeof(double);
    double *x = malloc(bytes);
    int up = above(transport), down = below(transport), failed = x ? 0 : error_set("out of memory");
    for (int i = 0; i < AHEAD && !failed; i++) {
        for (size_t k = 0; k < AHEAD_COUNT; k++) x[k] = 1000 * transport->rank + i;
        failed = one(transport, transport_send(up, CHANNEL_VALUES, x, bytes)) ||
                 one(transport, transport_send(down, CHANNEL_GRADIENTS, x, bytes));
    }
    for (int i = 0; i < 2 * AHEAD && !failed; i++) {
        int peer = i % 2 ? up : down;
        failed = one(transport,
                     transport_receive(peer, i % 2 ? CHANNEL_GRADIENTS : CHANNEL_VALUES, x, bytes));
        for (size_t k = 0; k < AHEAD_COUNT; k++) results[0] += x[k] != 1000 * peer + i / 2;
    }
    free(x);
    return failed ? -1 : 0;
}

enum { MUCH = 40000004, MOVED = 20000003 };

static int much(Transport *transport, double *results) {
    size_t count = MUCH / sizeof(int);
    int *mine = malloc(MUCH), *other = malloc(MUCH), peer = 1 - transport->rank;
    int failed = mine && other ? 0 : error_set("out of memory");
    if (!failed && transport->rank < 2) {
        for (size_t i = 0; i < count; i++) mine[i] = (int)i ^ transport->rank;
        Transfer batch[4] = {
            transport_send(peer, CHANNEL_VALUES, mine, MUCH),
            transport_send(peer, CHANNEL_VALUES, mine, sizeof *mine),
            transport_receive(peer, CHANNEL_VALUES, other, MUCH),
            transport_receive(peer, CHANNEL_VALUES, mine, sizeof *mine),
        };
        failed =
            transport_sendrecv(transport, batch, 2) || transport_sendrecv(transport, batch + 2, 2);
        for (size_t i = 0; i < count && !failed; i++) results[0] += other[i] != ((int)i ^ peer);
        results[0] += mine[0] != peer;
    }
    free(mine);
    free(other);
    return failed ? -1 : 0;
}

/* Rank 0 sends a message of which rank 1 expects another length. */
static int send_wrong_length(Transport *transport, size_t sent, size_t expected) {
    char *data = calloc(sent > expected ? sent : expected, 1);
    if (!data) return error_set("out of memory");
    Transfer t = transport->rank == 0 ? transport_send(1, CHANNEL_VALUES, data, sent)
                                      : transport_receive(0, CHANNEL_VALUES, data, expected);
    int failed = (transport->rank < 2 && transport_sendrecv(transport, &t, 1)) ||
                 transport_barrier(transport);
    free(data);
    return failed ? -1 : 0;
}

static int too_long(Transport *transport, double *results) {
    (void)results;
    return send_wrong_length(transport, 16, 8);
}

static int too_short(Transport *transport, double *results) {
    (void)results;
    return send_wrong_length(transport, 5000000, 5000001);
}

/* ---- collectives ---- */

double scenario_number(int rank, size_t i) {
    return random_uniform(7, (uint32_t)rank, i) * (rank == 1 ? 1e6 : 1);
}

static int sums(Transport *transport, double *results) {
    real x[SCENARIO_SUMS];
    for (size_t i = 0; i < SCENARIO_SUMS; i++) x[i] = (real)scenario_number(transport->rank, i);
    for (int round = 0; round < 20; round++)
        if (transport_barrier(transport)) return -1;
    if (transport_all_reduce(transport, x, SCENARIO_SUMS)) return -1;
    for (size_t i = 0; i < SCENARIO_SUMS; i++) results[i] = (double)x[i];
    return 0;
}

static int broadcasts(Transport *transport, double *results) {
    for (int root = 0; root < transport->ranks; root++) {
        double data[3] = {transport->rank, 10 * transport->rank, -1};
        if (transport_broadcast(transport, root, data, sizeof data)) return -1;
        results[root] = data[0] + data[1];
    }
    return 0;
}

/* Data larger than a message: sums, then a broadcast of them from rank 0. */
static int large(Transport *transport, double *results) {
    enum { COUNT = 1000003, SMALL = 1000 };
    int ranks = transport->ranks, failed = 0;
    real *x = malloc(COUNT * sizeof *x);
    if (!x) return error_set("out of memory");
    for (int i = 0; i < COUNT; i++) x[i] = (real)((transport->rank + 1) * (i % SMALL));
    failed = transport_all_reduce(transport, x, COUNT);
    for (int i = 0; i < COUNT && !failed; i++) {
        int sum = ranks * (ranks + 1) / 2 * (i % SMALL);
        results[0] += (int)x[i] != sum;
        if (transport->rank) x[i] = -1;
    }
    failed = failed || transport_broadcast(transport, 0, x, COUNT * sizeof *x);
    for (int i = 0; i < COUNT && !failed; i++)
        results[1] += (int)x[i] != ranks * (ranks + 1) / 2 * (i % SMALL);
    free(x);
    return failed ? -1 : 0;
}

/* Returns the byte at `at` of what a rank sends. */
static char byte_of(int rank, size_t at) { return (char)(at * 7 + at / 1000003 + (size_t)rank); }

static void fill_bytes(char *data, int rank) {
    for (size_t i = 0; i < MOVED; i++) data[i] = byte_of(rank, i);
}

static double wrong_bytes(const char *data, int rank) {
    double wrong = 0;
    for (size_t i = 0; i < MOVED; i++) wrong += data[i] != byte_of(rank, i);
    return wrong;
}

/* Each rank in turn moves its bytes to the next; then all gather them. */
static int moves(Transport *transport, double *results) {
    const int ranks = transport->ranks, rank = transport->rank;
    char *data = malloc(MOVED), *all = malloc(MOVED * (size_t)ranks);
    int failed = data && all ? 0 : error_set("out of memory");
    for (int from = 0; from < ranks && !failed; from++) {
        const int to = (from + 1) % ranks;
        fill_bytes(data, rank);
        failed = transport_move(transport, from, to, data, MOVED);
        if (!failed) results[0] += wrong_bytes(data, rank == to ? from : rank);
    }
    if (!failed) {
        fill_bytes(data, rank);
        failed = transport_all_gather(transport, all, data, MOVED);
    }
    for (int r = 0; r < ranks && !failed; r++)
        results[1] += wrong_bytes(all + (size_t)r * MOVED, r);
    free(data);
    free(all);
    return failed ? -1 : 0;
}

static int groups(Transport *transport, double *results) {
    int member[SCENARIO_RESULTS], members = 0;
    for (int r = transport->rank % 2; r < transport->ranks; r += 2) member[members++] = r;
    Transport *group = transport_group(transport, member, members);
    if (!group) return -1;
    real sum = (real)(transport->rank + 1);
    double from = -1, own = transport->rank;
    Transfer batch[2] = {transport_send(above(group), CHANNEL_VALUES, &own, sizeof own),
                         transport_receive(below(group), CHANNEL_VALUES, &from, sizeof from)};
    int failed = transport_all_reduce(group, &sum, 1) || transport_sendrecv(group, batch, 2);
    results[2] = batch[0].peer != above(group) || batch[1].peer != below(group);
    transport_free(group);
    results[0] = (double)sum;
    results[1] = from;
    return failed || transport_barrier(transport) ? -1 : 0;
}

/* ---- ranks that fail ---- */

static void sleep_s(double s) {
    nanosleep(&(struct timespec){(time_t)s, (long)(1e9 * (s - floor(s)))}, NULL);
}

static int leave(Transport *transport, double *results) {
    static const int waits_for[] = {1, 2, -1, 0};
    int peer = waits_for[transport->rank];
    double late_s = transport->rank == 1 ? transport->timeout_s / 2 : 0;
    if (peer < 0) return 0;
    sleep_s(late_s);
    /* What is named is the peer of the transfer that is missing, not of those that are done. */
    Transfer batch[3] = {
        transport_send(transport->rank, CHANNEL_GRADIENTS, &late_s, sizeof late_s),
        transport_receive(transport->rank, CHANNEL_GRADIENTS, &results[1], sizeof *results),
        transport_receive(peer, CHANNEL_VALUES, results, sizeof *results),
    };
    return transport_sendrecv(transport, batch, 3);
}

static int give_up(Transport *transport, double *results) {
    (void)results;
    if (transport->rank == 2) transport_abort(transport, "bcd: the loss is nan");
    return transport->rank == 2 ? 0 : transport_barrier(transport);
}

static int kill_rank_2(Transport *transport, double *results) {
    if (transport->rank == 2) raise(SIGKILL);
    return leave(transport, results);
}

static int stop_rank_2(Transport *transport, double *results) {
    if (transport->rank == 2) raise(SIGSTOP);
    return leave(transport, results);
}

static int compute(Transport *transport, double *results) {
    (void)results;
    if (transport_barrier(transport)) return -1;
    if (transport->rank == 1) sleep_s(3 * transport->timeout_s);
    return transport_barrier(transport);
}

static int hang(Transport *transport, double *results) {
    if (transport->rank != 2) return leave(transport, results);
    sleep_s(15 * transport->timeout_s);
    return 0;
}

static int stop_in_sums(Transport *transport, double *results) {
    enum { COUNT = 1 << 20 };
    real *x = calloc(COUNT, sizeof *x);
    int failed = x ? transport_barrier(transport) : error_set("out of memory");
    (void)results;
    if (transport->rank == 2) raise(SIGSTOP);
    failed = failed || transport_all_reduce(transport, x, COUNT);
    free(x);
    return failed;
}

static int give_up_alone(Transport *transport) {
    error_set("bcd: rank %d has no memory", transport->rank);
    transport_abort(transport, error_message());
    return -1;
}

/* The memory is given back to the system as soon as the transfer has failed. */
static int free_early(Transport *transport, double *results) {
    enum { BYTES = 1 << 26 };
    char *data = transport->rank < 2 ? calloc(BYTES, 1) : NULL;
    (void)results;
    if (transport_barrier(transport)) return -1;
    if (transport->rank == 2) {
        sleep_s(0.02);
        return give_up_alone(transport);
    }
    Transfer t = transport->rank == 0 ? transport_send(1, CHANNEL_COLLECTIVE, data, BYTES)
                                      : transport_receive(0, CHANNEL_COLLECTIVE, data, BYTES);
    const int failed = transport->rank < 2 ? transport_sendrecv(transport, &t, 1) : 0;
    free(data);
    return failed || transport_barrier(transport) ? -1 : 0;
}

/* None has heard of another's failure when it finds its own. */
static int all_give_up(Transport *transport, double *results) {
    (void)results;
    return transport_barrier(transport) ? -1 : give_up_alone(transport);
}

static int rest_gives_up(Transport *transport, double *results) {
    (void)results;
    const int failed = transport_barrier(transport); /* another may have given up meanwhile */
    if (transport->rank == 0) raise(SIGSTOP);
    return failed ? -1 : give_up_alone(transport);
}

const Scenario *scenario_find(const char *name) {
    static const Scenario scenarios[] = {
        {"swap", swap, false},
        {"order", order, false},
        {"ahead", ahead, false},
        {"much", much, false},
        {"too-long", too_long, false},
        {"too-short", too_short, false},
        {"sums", sums, false},
        {"broadcasts", broadcasts, false},
        {"large", large, false},
        {"moves", moves, false},
        {"groups", groups, false},
        {"leave", leave, false},
        {"give-up", give_up, false},
        {"kill", kill_rank_2, false},
        {"stop", stop_rank_2, false},
        {"compute", compute, false},
        {"hang", hang, false},
        {"stop-in-sums", stop_in_sums, true},
        {"free-early", free_early, true},
        {"all-give-up", all_give_up, true},
        {"rest-gives-up", rest_gives_up, true},
    };
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (strcmp(scenarios[i].name, name) == 0) return &scenarios[i];
    return NULL;
}
