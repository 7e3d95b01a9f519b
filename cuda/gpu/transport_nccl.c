/* Messages between the GPUs of a pipeline: values go up to the next rank, from the last to the
 * first, and gradients down.
 *
 * Each direction between two ranks has a communicator and a stream of its own.  One for all would
 * hang: "this operation is blocking for the GPU" (NCCL's user guide on ncclSend; what has to
 * progress at the same time belongs in one group), so that a send which waits for its receiver
 * keeps back what was asked for later, while schedules send ahead of their receives, and in a ring
 * each would wait for the next.
 *
 * Several communicators at a time have a hazard of their own (user guide, "Using multiple NCCL
 * communicators concurrently"): their kernels must all fit on the GPU, and nothing may wait for the
 * whole device while one of them waits.  So they have few blocks; they are connected, and have
 * their memory, before training begins; messages are allocated before a submodel trains
 * (dist/rank_boundary.c); and kernels are loaded when the program starts, for CUDA may stop the
 * device to load one at its first launch (CUDA's programming guide, "Lazy Loading").
 *
 * Ahead of each message a header goes over the control transport, and the receiver waits for that
 * first, so that NCCL, which waits on the device and for ever, is only asked for what is on its
 * way. A sender waits for nobody. */
#include "../transport_nccl.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../../dist/deadline.h"
#include "../../ref/error.h"
#include "../message.h"
#include "nccl_library.h"

/* Thread blocks of each communicator's kernels. */
enum { BLOCKS = 2, SENDS = 2, DIRECTIONS = 4, FIRST_BYTES = 16 };

typedef struct {
    uint64_t bytes;
} Header;

/* A channel from or to a neighbour. */
typedef struct {
    bool send;
    int peer;
    Channel channel;
    ncclComm_t comm;
    Stream stream;
} Direction;

typedef struct {
    Transport base;
    Transport *control;
    const NcclLibrary *nccl;
    Direction direction[DIRECTIONS]; /* the sends first */
    DeviceMessage **sent;            /* [sends], not yet taken by their receivers */
    int sends, capacity;
    bool broken; /* NCCL is not called any more */
    AbortLine why;
} NcclTransport;

static NcclTransport *of(Transport *transport) { return (NcclTransport *)(void *)transport; }

static bool is_message(const Transfer *t) { return t->send ? t->message != NULL : !t->data; }

static int check(const NcclTransport *n, const Direction *d, ncclResult_t result) {
    if (result == ncclSuccess || result == ncclInProgress) return 0;
    return error_set("transport: rank %d, NCCL with rank %d: %s (%.200s)", n->base.rank, d->peer,
                     n->nccl->ncclGetErrorString(result), n->nccl->ncclGetLastError(d->comm));
}

/* Waits until NCCL has done on the host what it was asked for and, if there is a message, until it
 * is on the device.  Communicators do not block, so that this has an end. */
static int settle(const NcclTransport *n, const Direction *d, const DeviceMessage *message,
                  const char *what) {
    static const struct timespec moment = {0, 50000};
    Deadline until = deadline_in(n->base.timeout_s);
    for (int times = 0;; times++) {
        ncclResult_t state = ncclInProgress;
        if (check(n, d, n->nccl->ncclCommGetAsyncError(d->comm, &state)) || check(n, d, state))
            return -1;
        if (state != ncclInProgress && (!message || event_over(message->ready))) return 0;
        if (deadline_over(until)) return transport_timed_out(&n->base, d->peer, what);
        if (times < 1000)
            sched_yield();
        else
            nanosleep(&moment, NULL);
    }
}

/* ---- messages ------------------------------------------------------------------------------- */

/* A message and where it goes, or comes from. */
typedef struct {
    const Direction *direction;
    DeviceMessage *message;
} Move;

/* (The sender is rank 0 of a communicator, the receiver rank 1; alone, both are rank 0.) */
static ncclResult_t start(const NcclTransport *n, const Move *m) {
    const Direction *d = m->direction;
    int other = d->send && n->base.ranks > 1;
    void *data = m->message->data;
    size_t bytes = m->message->bytes;
    return d->send ? n->nccl->ncclSend(data, bytes, ncclInt8, other, d->comm, d->stream)
                   : n->nccl->ncclRecv(data, bytes, ncclInt8, other, d->comm, d->stream);
}

/* Starts all in one group, so that none waits for another. */
static int start_all(const NcclTransport *n, const Move *move, int moves) {
    if (!moves) return 0;
    for (int i = 0; i < moves; i++)
        stream_wait_event(move[i].direction->stream, move[i].message->ready);
    int failed = check(n, move[0].direction, n->nccl->ncclGroupStart());
    for (int i = 0; i < moves && !failed; i++)
        failed = check(n, move[i].direction, start(n, &move[i]));
    failed = check(n, move[0].direction, n->nccl->ncclGroupEnd()) || failed;
    for (int i = 0; i < moves && !failed; i++) {
        failed = settle(n, move[i].direction, NULL, "to join by NCCL");
        event_record(move[i].message->ready, move[i].direction->stream);
    }
    return failed ? -1 : 0;
}

/* A message that was sent is kept until its receiver has it: freed before, its memory would go to
 * the next one, and the stage's stream would wait for that receiver. */
static void free_taken(NcclTransport *n) {
    int left = 0;
    for (int i = 0; i < n->sends; i++)
        if (event_over(n->sent[i]->ready))
            message_free(n->sent[i]);
        else
            n->sent[left++] = n->sent[i];
    n->sends = left;
}

static int reserve_sent(NcclTransport *n, int more) {
    int needed = n->sends + more;
    if (needed <= n->capacity) return 0;
    DeviceMessage **larger = realloc(n->sent, 2 * (size_t)needed * sizeof(DeviceMessage *));
    if (!larger) return error_set("transport: out of memory for %d messages", needed);
    n->sent = larger;
    n->capacity = 2 * needed;
    return 0;
}

static const Direction *find_direction(const NcclTransport *n, const Transfer *t) {
    for (int i = 0; i < DIRECTIONS; i++) {
        const Direction *d = &n->direction[i];
        if (d->send == t->send && d->channel == t->channel && d->peer == t->peer) return d;
    }
    error_set("transport: rank %d and rank %d are no neighbours that way", n->base.rank, t->peer);
    return NULL;
}

/* An exchange's messages: their headers, and what goes over the control transport. */
typedef struct {
    int count; /* messages */
    Transfer **message;
    Header *header;
    Move *move;
    Transfer *controlled; /* all transfers, headers in place of messages */
} Batch;

static void batch_close(Batch *b) {
    free(b->message);
    free(b->header);
    free(b->move);
    free(b->controlled);
}

static int batch_open(Batch *b, const NcclTransport *n, Transfer *transfers, int count) {
    size_t most = (size_t)count + 1;
    *b = (Batch){.message = calloc(most, sizeof(Transfer *)),
                 .header = calloc(most, sizeof(Header)),
                 .move = calloc(most, sizeof(Move)),
                 .controlled = calloc(most, sizeof(Transfer))};
    if (!b->message || !b->header || !b->move || !b->controlled)
        return error_set("transport: out of memory for %d messages", count);
    for (int i = 0; i < count; i++) {
        b->controlled[i] = transfers[i];
        if (!is_message(&transfers[i])) continue;
        b->move[b->count] = (Move){find_direction(n, &transfers[i]), transfers[i].message};
        if (!b->move[b->count].direction) return -1;
        b->header[b->count].bytes = transfers[i].bytes;
        b->controlled[i].message = NULL;
        b->controlled[i].data = &b->header[b->count];
        b->controlled[i].bytes = sizeof(Header);
        b->message[b->count++] = &transfers[i];
    }
    return 0;
}

/* Memory for what is going to come. */
static int prepare_receives(const NcclTransport *n, Batch *b) {
    for (int i = 0; i < b->count; i++) {
        const Transfer *t = b->message[i];
        if (t->send) continue;
        if (b->header[i].bytes != t->bytes)
            return transport_wrong_length(&n->base, t->peer, (size_t)b->header[i].bytes, t->bytes);
        b->move[i].message = message_new(t->bytes);
        if (!b->move[i].message) return -1;
    }
    return 0;
}

/* From here on what is sent is the transport's. */
static void take_sends(NcclTransport *n, Batch *b) {
    for (int i = 0; i < b->count; i++)
        if (b->message[i]->send) {
            n->sent[n->sends++] = b->message[i]->message;
            b->message[i]->message = NULL;
        }
}

static int carry(NcclTransport *n, Batch *b, int count) {
    if (reserve_sent(n, b->count) || n->control->is->sendrecv(n->control, b->controlled, count) ||
        prepare_receives(n, b))
        return -1;
    take_sends(n, b);
    if (start_all(n, b->move, b->count)) return -1;
    for (int i = 0; i < b->count; i++) {
        Move *m = &b->move[i];
        if (m->direction->send) continue;
        if (settle(n, m->direction, m->message, "to send what it announced")) return -1;
        b->message[i]->message = m->message;
        m->message = NULL;
    }
    return 0;
}

/* Ends NCCL's kernels, which else wait for ever. */
static void break_transport(NcclTransport *n, const char *why) {
    if (!n->broken) snprintf(n->why, sizeof n->why, "%s", why);
    n->broken = true;
    for (int i = 0; i < DIRECTIONS; i++) {
        Direction *d = &n->direction[i];
        if (d->comm && (d->send || n->base.ranks > 1)) n->nccl->ncclCommAbort(d->comm);
        d->comm = NULL;
    }
}

static int nccl_sendrecv(Transport *transport, Transfer *transfers, int count) {
    NcclTransport *n = of(transport);
    Batch b = {0};
    free_taken(n);
    int failed = n->broken || batch_open(&b, n, transfers, count) || carry(n, &b, count);
    if (failed) {
        break_transport(n, error_message());
        n->control->is->abort(n->control, n->why); /* unless it was that transport that broke */
        error_set("%s", n->why);
    }
    for (int i = 0; i < b.count; i++)
        if (!b.message[i]->send) message_free(b.move[i].message);
    batch_close(&b);
    return failed ? -1 : 0;
}

/* ---- create / destroy ----------------------------------------------------------------------- */

static void nccl_abort(Transport *transport, const char *why) {
    NcclTransport *n = of(transport);
    break_transport(n, why);
    n->control->is->abort(n->control, why);
}

/* Both ranks of a communicator end it together: all are begun before any is waited for. */
static void close_directions(NcclTransport *n) {
    int own = n->base.ranks > 1 ? DIRECTIONS : SENDS; /* alone, receives share them */
    for (int i = 0; i < own; i++)
        if (n->direction[i].comm) n->nccl->ncclCommFinalize(n->direction[i].comm);
    for (int i = 0; i < own; i++) {
        Direction *d = &n->direction[i];
        if (d->comm && settle(n, d, NULL, "to end by NCCL") == 0)
            n->nccl->ncclCommDestroy(d->comm);
        else if (d->comm)
            n->nccl->ncclCommAbort(d->comm);
    }
    for (int i = 0; i < DIRECTIONS; i++) stream_free(n->direction[i].stream);
}

static void nccl_free(Transport *transport) {
    NcclTransport *n = of(transport);
    Deadline until = deadline_in(transport->timeout_s);
    struct timespec moment = {0, 50000};
    while (!n->broken && n->sends && !deadline_over(until)) {
        free_taken(n);
        nanosleep(&moment, NULL);
    }
    if (n->sends) break_transport(n, "transport: messages were never received");
    close_directions(n);
    for (int i = 0; i < n->sends; i++) message_free(n->sent[i]);
    free(n->sent);
    message_users_remove();
    n->control->is->free(n->control);
    free(n);
}

/* Senders make the ids of their communicators, and send them over the control transport. */
static int share_ids(const NcclTransport *n, ncclUniqueId id[DIRECTIONS]) {
    Transfer t[DIRECTIONS];
    for (int i = 0; i < DIRECTIONS; i++) {
        const Direction *d = &n->direction[i];
        t[i] = (Transfer){d->send, d->peer, d->channel, &id[i], sizeof id[i], NULL};
        if (d->send && check(n, d, n->nccl->ncclGetUniqueId(&id[i]))) return -1;
    }
    return n->control->is->sendrecv(n->control, t, DIRECTIONS);
}

static int join(NcclTransport *n, const ncclUniqueId id[DIRECTIONS]) {
    bool alone = n->base.ranks == 1;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    config.minCTAs = 1;
    config.maxCTAs = BLOCKS;
    for (int i = 0; i < DIRECTIONS; i++) {
        Direction *d = &n->direction[i];
        d->stream = stream_create();
        if (!d->stream) return -1;
        if (alone && !d->send)
            d->comm = n->direction[i - SENDS].comm;
        else if (check(n, d,
                       n->nccl->ncclCommInitRankConfig(&d->comm, alone ? 1 : 2, id[i],
                                                       !d->send && !alone, &config)))
            return -1;
    }
    for (int i = 0; i < DIRECTIONS; i++)
        if (settle(n, &n->direction[i], NULL, "to join by NCCL")) return -1;
    return 0;
}

/* A first message each way, all in one group: NCCL connects two ranks, and allocates for them, when
 * they first talk. */
static int connect_all(NcclTransport *n) {
    Move move[DIRECTIONS] = {{NULL, NULL}};
    int failed = 0;
    for (int i = 0; i < DIRECTIONS && !failed; i++) {
        move[i] = (Move){&n->direction[i], message_new(FIRST_BYTES)};
        if (!move[i].message) failed = -1;
    }
    failed = failed || start_all(n, move, DIRECTIONS);
    for (int i = 0; i < DIRECTIONS; i++) {
        if (!failed) failed = settle(n, move[i].direction, move[i].message, "to connect by NCCL");
        message_free(move[i].message);
    }
    return failed ? -1 : 0;
}

static int open_directions(NcclTransport *n) {
    int ranks = n->base.ranks, up = (n->base.rank + 1) % ranks;
    int down = (n->base.rank + ranks - 1) % ranks;
    ncclUniqueId id[DIRECTIONS];
    n->direction[0] = (Direction){.send = true, .peer = up, .channel = CHANNEL_VALUES};
    n->direction[1] = (Direction){.send = true, .peer = down, .channel = CHANNEL_GRADIENTS};
    n->direction[2] = (Direction){.send = false, .peer = down, .channel = CHANNEL_VALUES};
    n->direction[3] = (Direction){.send = false, .peer = up, .channel = CHANNEL_GRADIENTS};
    return share_ids(n, id) || join(n, id) || connect_all(n) ? -1 : 0;
}

/* Of each of a communicator's blocks a buffer of NCCL_BUFFSIZE, 4 MiB (user guide, "Environment
 * Variables"), for each of the protocols that a connection may use, of which there are three. */
size_t transport_nccl_bytes(void) { return (size_t)DIRECTIONS * BLOCKS * 3 * ((size_t)4 << 20); }

Transport *transport_nccl_create(Transport *control) {
    static const TransportClass class = {
        .sendrecv = nccl_sendrecv, .abort = nccl_abort, .free = nccl_free};
    NcclTransport *n = calloc(1, sizeof *n);
    if (!n) error_set("transport: out of memory");
    if (!n || device_open() || !(n->nccl = nccl_library_open())) {
        control->is->abort(control, error_message());
        control->is->free(control);
        free(n);
        return NULL;
    }
    message_users_add();
    n->base = *control;
    n->base.is = &class;
    n->base.carries_messages = true;
    n->control = control;
    if (open_directions(n) == 0) return &n->base;
    AbortLine why;
    snprintf(why, sizeof why, "%s", error_message());
    nccl_abort(&n->base, why);
    nccl_free(&n->base);
    error_set("%s", why);
    return NULL;
}
