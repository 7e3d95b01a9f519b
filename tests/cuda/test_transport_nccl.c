/* Messages between devices over NCCL. On a GPU the library itself sends from the GPU to itself;
 * under SIMT ranks are threads over tests/simt/nccl_fake.c. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../cuda/message.h"
#include "../../cuda/stage/stage_cuda.h"
#include "../../cuda/transport_nccl.h"
#include "../../ref/base/error.h"
#include "../dist/pipeline_cases.h"
#include "../test.h"
#include "device_case.h"

enum { MOST_RANKS = 4, PATIENCE_S = 600 };

typedef struct Rank Rank;
struct Rank {
    Transport *transport;
    int (*play)(Rank *rank);
    Stream stream;
    int result, wrong;
    char error[400];
};

/* ---- a control transport that sees whether the others are told before NCCL is ended ---- */

/* Of tests/simt/nccl_fake.h; NCCL itself does not say what it would wait for. */
extern int nccl_fake_aborted(void) __attribute__((weak));
extern int nccl_fake_hung(void) __attribute__((weak));

typedef struct {
    Transport base;
    Transport *inner;
} Told;

static atomic_int told_late;

static int told_sendrecv(Transport *transport, Transfer *transfers, int count) {
    return transport_sendrecv(((Told *)(void *)transport)->inner, transfers, count);
}

static void told_abort(Transport *transport, const char *why) {
    told_late += nccl_fake_aborted && nccl_fake_aborted() > 0;
    transport_abort(((Told *)(void *)transport)->inner, why);
}

static void told_free(Transport *transport) {
    transport_free(((Told *)(void *)transport)->inner);
    free(transport);
}

static Transport *told(Transport *inner) {
    static const TransportClass class = {
        .sendrecv = told_sendrecv, .abort = told_abort, .free = told_free};
    Told *t = malloc(sizeof *t);
    if (!t) abort();
    *t = (Told){*inner, inner};
    t->base.is = &class;
    return &t->base;
}

/* ---- ranks ---- */

static void *run_rank(void *argument) {
    Rank *rank = argument;
    Transport *control = told(rank->transport);
    rank->result = -1;
    rank->transport = device_open() ? NULL : transport_nccl_create(control);
    rank->stream = rank->transport ? stream_create() : NULL;
    if (rank->stream) rank->result = rank->play(rank);
    strcpy(rank->error, rank->result ? error_message() : "");
    if (rank->transport) transport_free(rank->transport);
    stream_free(rank->stream);
    return NULL;
}

static void run_ranks(Rank *rank, int ranks, double timeout_s, int (*play)(Rank *rank)) {
    Transport *transport[MOST_RANKS];
    pthread_t thread[MOST_RANKS];
    if (!CHECK(transport_local_create(transport, ranks, timeout_s, message_free) == 0, "%s",
               error_message()))
        return;
    for (int r = 0; r < ranks; r++) {
        rank[r] = (Rank){.transport = transport[r], .play = play};
        if (pthread_create(&thread[r], NULL, run_rank, &rank[r])) abort();
    }
    for (int r = 0; r < ranks; r++) pthread_join(thread[r], NULL);
}

/* ---- messages ---- */

static int number(int from, int round, size_t i) { return from * 1000003 + round * 1009 + (int)i; }

static Transfer give(Rank *rank, int peer, Channel channel, int round, size_t count) {
    Transfer t = {true, peer, channel, NULL, count * sizeof(int), message_new(count * sizeof(int))};
    DeviceMessage *message = t.message;
    int *x = malloc(t.bytes);
    for (size_t i = 0; i < count; i++) x[i] = number(rank->transport->rank, round, i);
    stream_wait_event(rank->stream, message->ready);
    copy_to_device(rank->stream, message->data, x, t.bytes);
    event_record(message->ready, rank->stream);
    device_wait(rank->stream); /* until x has been read */
    free(x);
    return t;
}

static void look_at(Rank *rank, Transfer *t, int round) {
    DeviceMessage *message = t->message;
    int *x = malloc(t->bytes);
    stream_wait_event(rank->stream, message->ready);
    copy_to_host(rank->stream, x, message->data, t->bytes);
    event_record(message->ready, rank->stream);
    device_wait(rank->stream);
    for (size_t i = 0; i < t->bytes / sizeof(int); i++)
        rank->wrong += x[i] != number(t->peer, round, i);
    free(x);
    message_free(message);
}

static Transfer get(int peer, Channel channel, size_t count) {
    return (Transfer){false, peer, channel, NULL, count * sizeof(int), NULL};
}

/* Sends values up and gradients down a ring in one batch, in all sizes, and host data after it. A
 * single rank sends to itself. */
static int ring(Rank *rank) {
    static const size_t counts[] = {1, 100, 4097, 300000, 33};
    Transport *transport = rank->transport;
    int up = (transport->rank + 1) % transport->ranks,
        down = (transport->rank + transport->ranks - 1) % transport->ranks;
    for (int round = 0; round < 10; round++) {
        size_t count = counts[round % 5];
        int word = transport->rank, from = -1;
        Transfer batch[4] = {
            give(rank, up, CHANNEL_VALUES, round, count),
            give(rank, down, CHANNEL_GRADIENTS, round, 7),
            get(up, CHANNEL_GRADIENTS, 7),
            get(down, CHANNEL_VALUES, count),
        };
        Transfer words[2] = {transport_send(up, CHANNEL_COLLECTIVE, &word, sizeof word),
                             transport_receive(down, CHANNEL_COLLECTIVE, &from, sizeof from)};
        if (transport_sendrecv(transport, batch, 4) || transport_sendrecv(transport, words, 2))
            return -1;
        look_at(rank, &batch[2], round);
        look_at(rank, &batch[3], round);
        rank->wrong += from != down || batch[0].message || batch[1].message;
    }
    return transport_barrier(transport);
}

static void check_ring(int ranks) {
    Rank rank[MOST_RANKS];
    run_ranks(rank, ranks, PATIENCE_S, ring);
    for (int r = 0; r < ranks; r++)
        CHECK(rank[r].result == 0 && rank[r].wrong == 0, "rank %d of %d: %d wrong; %s", r, ranks,
              rank[r].wrong, rank[r].error);
}

static void sends_to_itself(void) { check_ring(1); }

#define NEED_RANKS() \
    if (device_ranks() == 1) SKIP("NCCL wants a GPU for each rank")

static void ranks_send_each_other(void) {
    NEED_RANKS();
    for (int ranks = 2; ranks <= MOST_RANKS; ranks++) check_ring(ranks);
}

/* All sends come before all receives, as in a schedule. */
static int ahead(Rank *rank) {
    Transport *transport = rank->transport;
    int up = (transport->rank + 1) % transport->ranks,
        down = (transport->rank + transport->ranks - 1) % transport->ranks;
    for (int i = 0; i < 3; i++) {
        Transfer values = give(rank, up, CHANNEL_VALUES, i, 50);
        Transfer gradients = give(rank, down, CHANNEL_GRADIENTS, i, 60);
        if (transport_sendrecv(transport, &values, 1) ||
            transport_sendrecv(transport, &gradients, 1))
            return -1;
    }
    for (int i = 0; i < 3; i++) {
        Transfer gradients = get(up, CHANNEL_GRADIENTS, 60);
        Transfer values = get(down, CHANNEL_VALUES, 50);
        if (transport_sendrecv(transport, &gradients, 1) ||
            transport_sendrecv(transport, &values, 1))
            return -1;
        look_at(rank, &gradients, i);
        look_at(rank, &values, i);
    }
    return 0;
}

static void sends_go_ahead_of_receives(void) {
    NEED_RANKS();
    Rank rank[MOST_RANKS];
    run_ranks(rank, 4, PATIENCE_S, ahead);
    for (int r = 0; r < 4; r++)
        CHECK(rank[r].result == 0 && rank[r].wrong == 0, "rank %d: %d wrong; %s", r, rank[r].wrong,
              rank[r].error);
}

/* ---- what goes wrong ---- */

static int wrong_length(Rank *rank) {
    Transport *transport = rank->transport;
    int up = (transport->rank + 1) % transport->ranks,
        down = (transport->rank + transport->ranks - 1) % transport->ranks;
    Transfer batch[2] = {give(rank, up, CHANNEL_VALUES, 0, 4), get(down, CHANNEL_VALUES, 2)};
    int failed = transport_sendrecv(transport, batch, 2);
    message_free(batch[0].message);
    return failed;
}

static void wrong_lengths_are_errors(void) {
    Rank rank[MOST_RANKS];
    run_ranks(rank, 1, PATIENCE_S, wrong_length);
    CHECK(strstr(rank[0].error, "rank 0 sent more than the 8 bytes that rank 0 expects"), "\"%s\"",
          rank[0].error);
}

static atomic_int waiting; /* the number of other ranks that wait in `leave` */

/* Rank 1 leaves while the others wait for its message and for each other. */
static int leave(Rank *rank) {
    static const struct timespec moment = {0, 10000000};
    Transfer t = get(1, CHANNEL_VALUES, 5);
    while (rank->transport->rank == 1 && waiting) nanosleep(&moment, NULL);
    if (rank->transport->rank == 1) return 0;
    int failed = rank->transport->rank == 2 ? transport_sendrecv(rank->transport, &t, 1)
                                            : transport_barrier(rank->transport);
    waiting--;
    return failed;
}

static int give_up(Rank *rank) {
    if (rank->transport->rank == 1) transport_abort(rank->transport, "bcd: the loss is nan");
    return rank->transport->rank == 1 ? 0 : leave(rank);
}

static bool all_say(Rank *rank, double timeout_s, int (*play)(Rank *rank), const char *words) {
    bool said = true;
    waiting = 2;
    run_ranks(rank, 3, timeout_s, play);
    for (int r = 0; r < 3; r += 2)
        said = said && rank[r].result == -1 && strstr(rank[r].error, words);
    return said;
}

/* On a busy machine the timeout may end before rank 2 has begun to wait, and then rank 2 is named.
 * So longer timeouts are tried. */
static void missing_rank_is_named(void) {
    NEED_RANKS();
    Rank rank[MOST_RANKS];
    bool named = false;
    for (double limit_s = 0.25; limit_s < PATIENCE_S && !named; limit_s *= 4) {
        char words[60];
        snprintf(words, sizeof words, "waited %g s for rank 1 (", limit_s);
        named = all_say(rank, limit_s, leave, words);
    }
    CHECK(named, "\"%s\", \"%s\"", rank[0].error, rank[2].error);
    CHECK(all_say(rank, PATIENCE_S, give_up, "rank 1 gave up: bcd: the loss is nan"),
          "\"%s\", \"%s\"", rank[0].error, rank[2].error);
}

/* Each rank has sent two messages that nobody takes. */
static int give_up_ahead(Rank *rank) {
    Transport *transport = rank->transport;
    int up = (transport->rank + 1) % transport->ranks,
        down = (transport->rank + transport->ranks - 1) % transport->ranks;
    Transfer sends[2] = {give(rank, up, CHANNEL_VALUES, 0, 50),
                         give(rank, down, CHANNEL_GRADIENTS, 0, 60)};
    if (transport_sendrecv(transport, sends, 2) || transport_barrier(transport)) return -1;
    if (transport->rank == 1) transport_abort(transport, "bcd: the loss is nan");
    return transport->rank == 1 ? 0 : transport_barrier(transport);
}

/* A rank that waits for the device before it has told the others may wait for one of them. */
static void others_are_told_before_nccl_ends(void) {
    NEED_RANKS();
    Rank rank[MOST_RANKS];
    const int hung = nccl_fake_hung ? nccl_fake_hung() : 0;
    told_late = 0;
    CHECK(all_say(rank, PATIENCE_S, give_up_ahead, "rank 1 gave up: bcd: the loss is nan"),
          "\"%s\", \"%s\"", rank[0].error, rank[2].error);
    CHECK(told_late == 0, "%d ranks tell the others late", told_late);
    CHECK(!nccl_fake_hung || nccl_fake_hung() == hung, "%d aborts hang", nccl_fake_hung() - hung);
}

/* ---- a training ---- */

static const StageKind kind = {.name = "NCCL",
                               .create = stage_cuda_create,
                               .message_free = message_free,
                               .join = transport_nccl_create};

static void trainings_have_the_same_bits(void) {
    NEED_RANKS();
    for (const PipelineRow *row = pipeline_rows; row->name; row++)
        if (row->ranks > 1 && row->placement == PLACEMENT_VIRTUAL && row->trained > 1)
            pipeline_check_same(row, &kind);
}

static void pre_inference_has_the_same_bits(void) {
    NEED_RANKS();
    pipeline_check_infer(&kind, 4);
}

void test_transport_nccl(void) {
    RUN(sends_to_itself);
    RUN(ranks_send_each_other);
    RUN(sends_go_ahead_of_receives);
    RUN(wrong_lengths_are_errors);
    RUN(missing_rank_is_named);
    RUN(others_are_told_before_nccl_ends);
    RUN(trainings_have_the_same_bits);
    RUN(pre_inference_has_the_same_bits);
}
