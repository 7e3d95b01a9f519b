/* Messages between the GPUs of a pipeline: values go up to the next rank (from the last rank to the
 * first), and gradients down.
 *
 * Before each message its bytes are sent over the control transport, and the receiver waits for
 * this header first.  So NCCL, which waits on the device and for ever, is only asked for messages
 * that are on their way.  A sender does not wait for its receiver.
 *
 * Each direction between two ranks has a communicator and a stream of its own.  One communicator
 * for all would hang.  A send "is blocking for the GPU" (NCCL's user guide on ncclSend; operations
 * that must progress at the same time belong in one group), so that a send which waits for its
 * receiver would hold up all later operations.  But schedules send ahead of their receives, and in
 * a ring each rank would wait for the next.
 *
 * Several communicators at a time have a hazard of their own (user guide, "Using multiple NCCL
 * communicators concurrently"): their kernels must all fit on the GPU, and nothing may wait for the
 * whole device while one of them waits.  So they have few blocks; they are connected, and have
 * their memory, before training begins; and messages are allocated before a submodel trains
 * (dist/rank_tasks.c).  CUDA may also stop the device to load a kernel (programming guide, "Lazy
 * Loading").  Ours are loaded when the program starts.  cuBLASLt itself loads many of its own, each
 * when an algorithm first needs it, so the first step of each kind sends through the host
 * (`waits_on_device`). */
#include "../transport_nccl.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../../ref/base/clock.h"
#include "../../ref/base/error.h"
#include "../matmul.h"
#include "../message.h"
#include "nccl_library.h"

enum { SENDS = 2, DIRECTIONS = 4 };

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
    Direction direction[DIRECTIONS]; /* the sends first */
    DeviceMessage **sent;            /* [sends], not yet taken by their receivers */
    int sends, capacity;
    bool broken; /* NCCL is not called any more */
    AbortLine why;
} NcclTransport;

/* A message and where it goes, or comes from. */
typedef struct {
    const Direction *direction;
    DeviceMessage *message;
} NcclMove;

/* ---- directions ---- */

/* Thread blocks of each communicator's kernels. */
enum { BLOCKS = 2, FIRST_BYTES = 16 };

static int check(const NcclTransport *n, const Direction *d, ncclResult_t result) {
    if (result == ncclSuccess || result == ncclInProgress) return 0;
    return error_set("transport: rank %d, NCCL with rank %d: %s (%.200s)",
                     transport_whole_rank(&n->base, n->base.rank),
                     transport_whole_rank(&n->base, d->peer), nccl.ncclGetErrorString(result),
                     nccl.ncclGetLastError(d->comm));
}

/* Waits until NCCL has done on the host what it was asked for and, if there is a message, until it
 * is on the device.  Communicators are non-blocking, so that this can time out.  Returns -1 then,
 * when it fails, or when another rank has given up, of which the control transport hears.  The
 * error names the other rank and says `what` is missing, or is that one's. */
static int settle(const NcclTransport *n, const Direction *d, const DeviceMessage *message,
                  const char *what) {
    static const struct timespec moment = {0, 50000};
    const double until = clock_seconds() + n->base.timeout_s;
    for (int times = 0;; times++) {
        ncclResult_t state = ncclInProgress;
        if (check(n, d, nccl.ncclCommGetAsyncError(d->comm, &state)) || check(n, d, state))
            return -1;
        int over = message ? event_over(message->ready) : 1;
        if (over < 0) return -1;
        if (over && state != ncclInProgress) return 0;
        if (clock_seconds() >= until) return transport_timed_out(&n->base, d->peer, what);
        if (times % 100 == 99 && transport_sendrecv(n->control, NULL, 0)) return -1;
        if (times < 1000)
            sched_yield();
        else
            nanosleep(&moment, NULL);
    }
}

/* The sender is rank 0 of a communicator and the receiver rank 1; in a run of one rank both are 0.
 */
static ncclResult_t start(const NcclTransport *n, const NcclMove *m) {
    const Direction *d = m->direction;
    int other = d->send && n->base.ranks > 1;
    void *data = m->message->data;
    size_t bytes = m->message->bytes;
    return d->send ? nccl.ncclSend(data, bytes, ncclInt8, other, d->comm, d->stream)
                   : nccl.ncclRecv(data, bytes, ncclInt8, other, d->comm, d->stream);
}

/* Starts all moves in one group, so that none waits for another.  Returns -1 and an error. */
static int start_all(const NcclTransport *n, const NcclMove *move, int moves) {
    if (!moves) return 0;
    for (int i = 0; i < moves; i++)
        stream_wait_event(move[i].direction->stream, move[i].message->ready);
    int failed = check(n, move[0].direction, nccl.ncclGroupStart());
    for (int i = 0; i < moves && !failed; i++)
        failed = check(n, move[i].direction, start(n, &move[i]));
    failed = check(n, move[0].direction, nccl.ncclGroupEnd()) || failed;
    for (int i = 0; i < moves && !failed; i++) {
        failed = settle(n, move[i].direction, NULL, "to join by NCCL");
        event_record(move[i].message->ready, move[i].direction->stream);
    }
    return failed ? -1 : 0;
}

/* A single rank receives by the communicators that it sends by. */
static int own_comms(const NcclTransport *n) { return n->base.ranks > 1 ? DIRECTIONS : SENDS; }

/* Ends NCCL's kernels, which would otherwise wait for ever.  An abort may wait for the whole device
 * when it frees memory, and so for the kernels of a communicator that is aborted after it; a group
 * first tells all kernels to end. */
static void abort_comms(NcclTransport *n) {
    nccl.ncclGroupStart();
    for (int i = 0; i < own_comms(n); i++)
        if (n->direction[i].comm) nccl.ncclCommAbort(n->direction[i].comm);
    nccl.ncclGroupEnd();
    for (int i = 0; i < DIRECTIONS; i++) n->direction[i].comm = NULL;
}

/* From here on nothing is asked of NCCL but to end.  The first `why` is kept. */
static void set_broken(NcclTransport *n, const char *why) {
    if (!n->broken) snprintf(n->why, sizeof n->why, "%s", why);
    n->broken = true;
}

static NcclTransport *of(Transport *transport) { return (NcclTransport *)(void *)transport; }

static bool is_message(const Transfer *t) { return t->send ? t->message != NULL : !t->data; }

/* ---- messages ---- */

/* Frees the messages that their receivers have.  A message freed before that would give its memory
 * to the next one, and the stage's stream would wait for the receiver.  -1 and an error. */
static int free_taken(NcclTransport *n) {
    int left = 0, failed = 0;
    for (int i = 0; i < n->sends; i++) {
        const int over = failed ? 0 : event_over(n->sent[i]->ready);
        if (over < 0) failed = -1;
        if (over > 0)
            message_free(n->sent[i]);
        else
            n->sent[left++] = n->sent[i];
    }
    n->sends = left;
    return failed;
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
    return error_null("transport: rank %d and rank %d are no neighbours that way",
                      transport_whole_rank(&n->base, n->base.rank),
                      transport_whole_rank(&n->base, t->peer));
}

/* Sends and receives at most one message in each direction, headers first.  All go into one group
 * of NCCL, which wants a message of a rank to itself to be received in the group that sends it. */
static int carry(NcclTransport *n, Transfer *t, int count) {
    uint64_t header[DIRECTIONS];
    Transfer announced[DIRECTIONS];
    NcclMove move[DIRECTIONS];
    if (count > DIRECTIONS) return error_set("transport: %d messages at once", count);
    for (int i = 0; i < count; i++) {
        header[i] = t[i].bytes;
        announced[i] =
            (Transfer){t[i].send, t[i].peer, t[i].channel, &header[i], sizeof header[i], NULL};
        move[i] = (NcclMove){find_direction(n, &t[i]), t[i].message};
        if (!move[i].direction) return -1;
    }
    if (reserve_sent(n, count) || transport_sendrecv(n->control, announced, count)) return -1;
    for (int i = 0; i < count; i++) {
        if (t[i].send) {
            n->sent[n->sends++] = t[i].message;
            t[i].message = NULL;
            continue;
        }
        if (header[i] != t[i].bytes)
            return transport_wrong_length(&n->base, t[i].peer, (size_t)header[i], t[i].bytes);
        t[i].message = move[i].message = message_new(t[i].bytes);
        if (!t[i].message) return -1;
    }
    if (start_all(n, move, count)) return -1;
    for (int i = 0; i < count; i++)
        if (!t[i].send &&
            settle(n, move[i].direction, move[i].message, "to send what it announced"))
            return -1;
    return 0;
}

static int nccl_sendrecv(Transport *transport, Transfer *transfers, int count) {
    NcclTransport *n = of(transport);
    bool messages = count > 0 && is_message(&transfers[0]);
    int failed =
        n->broken || free_taken(n) ||
        (messages ? carry(n, transfers, count) : transport_sendrecv(n->control, transfers, count));
    if (failed) {
        set_broken(n, error_message());
        transport_abort(n->control, n->why); /* tells the others, unless it broke itself */
        abort_comms(n);
        error_set("%s", n->why);
    }
    return failed ? -1 : 0;
}

/* ---- connections ---- */

/* Creates the ids of communicators on their senders, and sends them over the control transport. */
static int share_ids(const NcclTransport *n, ncclUniqueId id[DIRECTIONS]) {
    Transfer t[DIRECTIONS];
    for (int i = 0; i < DIRECTIONS; i++) {
        const Direction *d = &n->direction[i];
        t[i] = (Transfer){d->send, d->peer, d->channel, &id[i], sizeof id[i], NULL};
        if (d->send && check(n, d, nccl.ncclGetUniqueId(&id[i]))) return -1;
    }
    return transport_sendrecv(n->control, t, DIRECTIONS);
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
                       nccl.ncclCommInitRankConfig(&d->comm, alone ? 1 : 2, id[i],
                                                   !d->send && !alone, &config)))
            return -1;
    }
    for (int i = 0; i < DIRECTIONS; i++)
        if (settle(n, &n->direction[i], NULL, "to join by NCCL")) return -1;
    return 0;
}

/* Sends a first message each way, all in one group: NCCL connects two ranks, and allocates for
 * them, when they first communicate. */
static int connect_all(NcclTransport *n) {
    NcclMove move[DIRECTIONS] = {{NULL, NULL}};
    int failed = 0;
    for (int i = 0; i < DIRECTIONS && !failed; i++) {
        move[i] = (NcclMove){&n->direction[i], message_new(FIRST_BYTES)};
        if (!move[i].message) failed = -1;
    }
    failed = failed || start_all(n, move, DIRECTIONS);
    for (int i = 0; i < DIRECTIONS; i++) {
        if (!failed) failed = settle(n, move[i].direction, move[i].message, "to connect by NCCL");
        message_free(move[i].message);
    }
    return failed ? -1 : 0;
}

/* Creates the communicators and connects them.  All ranks must call it together. */
static int connect_directions(NcclTransport *n) {
    int ranks = n->base.ranks, up = (n->base.rank + 1) % ranks;
    int down = (n->base.rank + ranks - 1) % ranks;
    ncclUniqueId id[DIRECTIONS];
    n->direction[0] = (Direction){.send = true, .peer = up, .channel = CHANNEL_VALUES};
    n->direction[1] = (Direction){.send = true, .peer = down, .channel = CHANNEL_GRADIENTS};
    n->direction[2] = (Direction){.send = false, .peer = down, .channel = CHANNEL_VALUES};
    n->direction[3] = (Direction){.send = false, .peer = up, .channel = CHANNEL_GRADIENTS};
    return share_ids(n, id) || join(n, id) || connect_all(n) ? -1 : 0;
}

/* Both ranks of a communicator end it together, so all are begun before any is waited for.  If one
 * does not end, its kernel may still wait on the device, and destroying another would wait for it.
 */
static void close_directions(NcclTransport *n) {
    bool ended = true;
    for (int i = 0; i < own_comms(n); i++)
        if (n->direction[i].comm) nccl.ncclCommFinalize(n->direction[i].comm);
    for (int i = 0; i < own_comms(n); i++) {
        const Direction *d = &n->direction[i];
        ended = ended && (!d->comm || settle(n, d, NULL, "to end by NCCL") == 0);
    }
    if (!ended) abort_comms(n);
    for (int i = 0; i < own_comms(n); i++)
        if (n->direction[i].comm) nccl.ncclCommDestroy(n->direction[i].comm);
    for (int i = 0; i < DIRECTIONS; i++) stream_free(n->direction[i].stream);
}

/* Each of a communicator's blocks has a buffer of NCCL_BUFFSIZE, 4 MiB (user guide, "Environment
 * Variables"), for each of the three protocols that a connection may use. */
size_t transport_nccl_bytes(void) { return (size_t)DIRECTIONS * BLOCKS * 3 * ((size_t)4 << 20); }

/* ---- create / destroy ---- */

static void nccl_abort(Transport *transport, const char *why) {
    NcclTransport *n = of(transport);
    set_broken(n, why);
    transport_abort(n->control, why); /* before this rank may wait for the device */
    abort_comms(n);
}

static void nccl_free(Transport *transport) {
    NcclTransport *n = of(transport);
    const double until = clock_seconds() + transport->timeout_s;
    struct timespec moment = {0, 50000};
    while (!n->broken && n->sends && clock_seconds() < until) {
        if (free_taken(n)) break;
        nanosleep(&moment, NULL);
    }
    if (n->sends && !n->broken) nccl_abort(transport, "transport: messages were never received");
    close_directions(n);
    for (int i = 0; i < n->sends; i++) message_free(n->sent[i]);
    free(n->sent);
    message_users_remove();
    transport_free(n->control);
    free(n);
}

Transport *transport_nccl_create(Transport *control) {
    static const TransportClass class = {
        .sendrecv = nccl_sendrecv, .abort = nccl_abort, .free = nccl_free};
    NcclTransport *n = calloc(1, sizeof *n);
    if (!n) error_set("transport: out of memory");
    if (!n || device_open() || cuda_matmul_load() || nccl_open()) {
        transport_abort(control, error_message());
        transport_free(control);
        free(n);
        return NULL;
    }
    message_users_add();
    n->base = *control;
    n->base.is = &class;
    n->base.carries_messages = n->base.waits_on_device = true;
    n->control = control;
    if (connect_directions(n) == 0) return &n->base;
    AbortLine why;
    snprintf(why, sizeof why, "%s", error_message());
    nccl_abort(&n->base, why);
    nccl_free(&n->base);
    return error_null("%s", why);
}
