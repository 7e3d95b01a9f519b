/* Communication between the ranks of a pipeline: messages from rank to rank, and collectives made
 * of them.  Implementations differ in how they carry a message: through memory between threads of
 * one process (transport_local.c), by MPI between processes (mpi/), or by NCCL between GPUs
 * (cuda/).
 *
 * Messages have no tags; those of one channel between two ranks arrive in order.  No call waits
 * longer than timeout_s for a rank or, over MPI, BUSY_TIMEOUTS times as long for one that runs.  If
 * a rank has died or hangs, the error names it, and the transport is then broken for all ranks. */
#pragma once

#include "../ref/base/real.h"

enum { BUSY_TIMEOUTS = 10 };

typedef enum {
    CHANNEL_VALUES,     /* outputs of chunks, on their way up */
    CHANNEL_GRADIENTS,  /* gradients of these, on their way down */
    CHANNEL_COLLECTIVE, /* collectives */
    CHANNELS
} Channel;

typedef struct {
    bool send; /* true: send to peer; false: receive from it */
    int peer;
    Channel channel;
    void *data; /* read by a send, overwritten by a receive */
    size_t bytes;
    /* On a transport with carries_messages: a message of a device (stage_device.h), in place of
     * data, which is then NULL; a batch with messages has nothing else, and at most one for each
     * peer, channel and direction.  A send gives the message away and sets this to NULL; a receive
     * sets it to the one that came, for the caller to free.  After a failure the caller owns what
     * is still here. */
    void *message;
} Transfer;

static inline Transfer transport_send(int peer, Channel channel, void *data, size_t bytes) {
    return (Transfer){true, peer, channel, data, bytes, NULL};
}
static inline Transfer transport_receive(int peer, Channel channel, void *data, size_t bytes) {
    return (Transfer){false, peer, channel, data, bytes, NULL};
}

typedef struct Transport Transport;
typedef struct {
    /* Does a batch of sends and receives, in any order, so that two ranks that send to each other
     * do not deadlock.  Returns when all are done and the data of sends may be overwritten.  A send
     * of a value or gradient never waits for the receiver. */
    int (*sendrecv)(Transport *transport, Transfer *transfers, int count);
    /* Tells the other ranks that this one gives up, and why.  Their calls then fail with that
     * line. */
    void (*abort)(Transport *transport, const char *why);
    /* After a failure: returns true if this rank is to report the error, and otherwise waits until
     * another has done so.  Of the ranks that still run, the lowest reports it.  NULL, as true,
     * between threads, in groups and over NCCL. */
    bool (*reports)(Transport *transport);
    /* Over MPI and NCCL all ranks call it, and it waits for them unless the transport is broken. */
    void (*free)(Transport *transport);
} TransportClass;

/* All functions return 0, or -1 and an error that names the rank that failed. */
struct Transport {
    const TransportClass *is;
    int rank, ranks;
    double timeout_s;
    bool carries_messages; /* of a device, without copying them to the host */
    /* A message that was sent waits on the device for its receiver, and with it whatever waits for
     * the whole device. */
    bool waits_on_device;
    const int *member; /* [ranks]: of a group, the ranks in the whole; otherwise NULL */
};

/* ---- the calls of a transport, as above ---- */

static inline int transport_sendrecv(Transport *transport, Transfer *transfers, int count) {
    return transport->is->sendrecv(transport, transfers, count);
}
static inline void transport_abort(Transport *transport, const char *why) {
    transport->is->abort(transport, why);
}
static inline bool transport_reports(Transport *transport) {
    return !transport->is->reports || transport->is->reports(transport);
}
static inline void transport_free(Transport *transport) { transport->is->free(transport); }

/* Overwrites x[count] with the sum of all ranks' x, added in the order of ranks, so that the bits
 * are the same on every rank and for any timing. */
int transport_all_reduce(Transport *transport, real *x, size_t count);
/* Overwrites every rank's data[bytes] with those of rank `root`. */
int transport_broadcast(Transport *transport, int root, void *data, size_t bytes);
/* Overwrites data[bytes] on rank `to` with those of rank `from`; does nothing on other ranks, and
 * where both are the same. */
int transport_move(Transport *transport, int from, int to, void *data, size_t bytes);
/* Overwrites all[ranks][bytes], on every rank, with mine[bytes] of every rank; `mine` may be its
 * own place in `all`. */
int transport_all_gather(Transport *transport, void *all, const void *mine, size_t bytes);
/* Returns when all ranks have called it. */
int transport_barrier(Transport *transport);

/* Creates a transport between some ranks of another, `whole`.  member[members] are their ranks
 * there, in ascending order, and include the caller's; member[i] becomes rank i.  Messages use the
 * channels of the whole, so two ranks may have at most one such group in common.  The whole must
 * outlive the group, and stays open when that is freed.  NULL and an error when memory runs out. */
Transport *transport_group(Transport *whole, const int *member, int members);

/* ---- for implementations: errors that all of them report alike ---- */

/* Returns the number by which errors name a rank: that in the whole, of which a group is a part. */
int transport_whole_rank(const Transport *transport, int rank);
/* Finds out which rank failed when `missing` sends or takes no message, since that may be waiting
 * for another rank itself.  waits_for returns the rank that `rank` waits for, or a negative number
 * if it waits for none or does not answer. */
int transport_failed_rank(Transport *transport, int missing,
                          int (*waits_for)(Transport *transport, int rank));
/* Returns -1 and the error that failed_rank did not do within timeout_s what this rank waits for:
 * `what` is "to send a message", for example. */
int transport_timed_out(const Transport *transport, int failed_rank, const char *what);
/* Returns -1 and the error that a rank, which answers and waits for none, has not done it for so
 * long. */
int transport_still_busy(const Transport *transport, int busy_rank, const char *what,
                         double seconds);
/* Returns -1 and the error that a message from `peer` does not have the expected length in bytes.
 * A message that is too long need not say how long it is: any larger `sent` will do. */
int transport_wrong_length(const Transport *transport, int peer, size_t sent, size_t expected);
/* Writes the line that the other ranks report when this one aborts. */
typedef char AbortLine[400];
void transport_abort_line(AbortLine line, const Transport *transport, const char *why);

/* Creates the transports of ranks that are threads of this process.  Overwrites transport[ranks];
 * one thread uses each and frees it.  message_free frees messages of a device that were never
 * received; if it is NULL, no such messages are carried.  -1 and an error when memory runs out. */
int transport_local_create(Transport **transport, int ranks, double timeout_s,
                           void (*message_free)(void *message));
