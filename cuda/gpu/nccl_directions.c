/* Each direction between two ranks has a communicator and a stream of its own.  One communicator
 * for all would hang.  A send "is blocking for the GPU" (NCCL's user guide on ncclSend; operations
 * that must progress at the same time belong in one group), so that a send which waits for its
 * receiver would hold up all later operations.  But schedules send ahead of their receives, and in
 * a ring each rank would wait for the next.
 *
 * Several communicators at a time have a hazard of their own (user guide, "Using multiple NCCL
 * communicators concurrently"): their kernels must all fit on the GPU, and nothing may wait for the
 * whole device while one of them waits.  So they have few blocks; they are connected, and have
 * their memory, before training begins; messages are allocated before a submodel trains
 * (dist/rank_boundary.c); and kernels are loaded when the program starts, because CUDA may stop the
 * device to load one at its first launch (CUDA's programming guide, "Lazy Loading"). */
#include "nccl_directions.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../../dist/deadline.h"
#include "../../ref/error.h"
#include "../transport_nccl.h"

/* Thread blocks of each communicator's kernels. */
enum { BLOCKS = 2, FIRST_BYTES = 16 };

static int check(const NcclTransport *n, const Direction *d, ncclResult_t result) {
    if (result == ncclSuccess || result == ncclInProgress) return 0;
    return error_set("transport: rank %d, NCCL with rank %d: %s (%.200s)", n->base.rank, d->peer,
                     nccl.ncclGetErrorString(result), nccl.ncclGetLastError(d->comm));
}

/* Communicators are non-blocking, so that this can time out. */
int direction_settle(const NcclTransport *n, const Direction *d, const DeviceMessage *message,
                     const char *what) {
    static const struct timespec moment = {0, 50000};
    Deadline until = deadline_in(n->base.timeout_s);
    for (int times = 0;; times++) {
        ncclResult_t state = ncclInProgress;
        if (check(n, d, nccl.ncclCommGetAsyncError(d->comm, &state)) || check(n, d, state))
            return -1;
        int over = message ? event_over(message->ready) : 1;
        if (over < 0) return -1;
        if (over && state != ncclInProgress) return 0;
        if (deadline_over(until)) return transport_timed_out(&n->base, d->peer, what);
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

int directions_start(const NcclTransport *n, const NcclMove *move, int moves) {
    if (!moves) return 0;
    for (int i = 0; i < moves; i++)
        stream_wait_event(move[i].direction->stream, move[i].message->ready);
    int failed = check(n, move[0].direction, nccl.ncclGroupStart());
    for (int i = 0; i < moves && !failed; i++)
        failed = check(n, move[i].direction, start(n, &move[i]));
    failed = check(n, move[0].direction, nccl.ncclGroupEnd()) || failed;
    for (int i = 0; i < moves && !failed; i++) {
        failed = direction_settle(n, move[i].direction, NULL, "to join by NCCL");
        event_record(move[i].message->ready, move[i].direction->stream);
    }
    return failed ? -1 : 0;
}

void directions_break(NcclTransport *n, const char *why) {
    if (!n->broken) snprintf(n->why, sizeof n->why, "%s", why);
    n->broken = true;
    for (int i = 0; i < DIRECTIONS; i++) {
        Direction *d = &n->direction[i];
        if (d->comm && (d->send || n->base.ranks > 1)) nccl.ncclCommAbort(d->comm);
        d->comm = NULL;
    }
}

/* ---- create / destroy ---- */

/* Creates the ids of communicators on their senders, and sends them over the control transport. */
static int share_ids(const NcclTransport *n, ncclUniqueId id[DIRECTIONS]) {
    Transfer t[DIRECTIONS];
    for (int i = 0; i < DIRECTIONS; i++) {
        const Direction *d = &n->direction[i];
        t[i] = (Transfer){d->send, d->peer, d->channel, &id[i], sizeof id[i], NULL};
        if (d->send && check(n, d, nccl.ncclGetUniqueId(&id[i]))) return -1;
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
                       nccl.ncclCommInitRankConfig(&d->comm, alone ? 1 : 2, id[i],
                                                   !d->send && !alone, &config)))
            return -1;
    }
    for (int i = 0; i < DIRECTIONS; i++)
        if (direction_settle(n, &n->direction[i], NULL, "to join by NCCL")) return -1;
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
    failed = failed || directions_start(n, move, DIRECTIONS);
    for (int i = 0; i < DIRECTIONS; i++) {
        if (!failed)
            failed = direction_settle(n, move[i].direction, move[i].message, "to connect by NCCL");
        message_free(move[i].message);
    }
    return failed ? -1 : 0;
}

int directions_open(NcclTransport *n) {
    int ranks = n->base.ranks, up = (n->base.rank + 1) % ranks;
    int down = (n->base.rank + ranks - 1) % ranks;
    ncclUniqueId id[DIRECTIONS];
    n->direction[0] = (Direction){.send = true, .peer = up, .channel = CHANNEL_VALUES};
    n->direction[1] = (Direction){.send = true, .peer = down, .channel = CHANNEL_GRADIENTS};
    n->direction[2] = (Direction){.send = false, .peer = down, .channel = CHANNEL_VALUES};
    n->direction[3] = (Direction){.send = false, .peer = up, .channel = CHANNEL_GRADIENTS};
    return share_ids(n, id) || join(n, id) || connect_all(n) ? -1 : 0;
}

/* Both ranks of a communicator end it together, so all are begun before any is waited for. */
void directions_close(NcclTransport *n) {
    int own = n->base.ranks > 1 ? DIRECTIONS : SENDS; /* a single rank's receives use the sends' */
    for (int i = 0; i < own; i++)
        if (n->direction[i].comm) nccl.ncclCommFinalize(n->direction[i].comm);
    for (int i = 0; i < own; i++) {
        Direction *d = &n->direction[i];
        if (d->comm && direction_settle(n, d, NULL, "to end by NCCL") == 0)
            nccl.ncclCommDestroy(d->comm);
        else if (d->comm)
            nccl.ncclCommAbort(d->comm);
    }
    for (int i = 0; i < DIRECTIONS; i++) stream_free(n->direction[i].stream);
}

/* Each of a communicator's blocks has a buffer of NCCL_BUFFSIZE, 4 MiB (user guide, "Environment
 * Variables"), for each of the three protocols that a connection may use. */
size_t transport_nccl_bytes(void) { return (size_t)DIRECTIONS * BLOCKS * 3 * ((size_t)4 << 20); }
