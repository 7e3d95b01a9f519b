/* What joins the ranks of a pipeline: messages between two of them, out of which come the few
 * things that all of them do together.  Implementations differ in what carries a message: memory,
 * between threads of one process (transport_local.c); MPI, between processes (mpi/); NCCL, between
 * GPUs (cuda/).
 *
 * Between two ranks each channel is in order; messages carry no tags.  Every call waits at most
 * timeout_s: a rank that died or hangs is named in the error, and the transport is then broken for
 * all.
 */
#ifndef DIST_TRANSPORT_H
#define DIST_TRANSPORT_H

#include "../ref/real.h"

typedef enum {
    CHANNEL_VALUES,    /* up */
    CHANNEL_GRADIENTS, /* down */
    CHANNEL_TOGETHER,  /* what all do together */
    CHANNELS
} Channel;

typedef struct {
    bool send; /* else receive */
    int peer;
    Channel channel;
    void *data; /* read by a send, overwritten by a receive */
    size_t bytes;
    /* In place of data (NULL), on a transport that carries messages of a device (stage.h): a send
     * gives it away, a receive gets one.  After sendrecv it is the caller's again, to free: NULL
     * once it was sent, or as long as none came. */
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
    /* Does a batch of sends and receives, in any order, so that two neighbours who send to each
     * other do not wait for each other.  On return the data of sends may be overwritten.  A send
     * may wait while the channel is full (transport_local_create's capacity). */
    int (*sendrecv)(Transport *transport, Transfer *transfers, int count);
    /* Tells the others that this rank gives up, and why; their calls fail with that line. */
    void (*abort)(Transport *transport, const char *why);
    void (*free)(Transport *transport);
} TransportClass;

/* All functions return 0, or -1 and an error that names the rank which is missing. */
struct Transport {
    const TransportClass *is;
    int rank, ranks;
    double timeout_s;
    bool carries_messages;
};

/* x[count] = sum of all ranks' x, added in the order of ranks: the same bits everywhere, and for
 * any timing. */
int transport_all_reduce(Transport *transport, real *x, size_t count);
/* Every rank's data becomes that of rank root. */
int transport_broadcast(Transport *transport, int root, void *data, size_t bytes);
/* all[ranks][bytes] = every rank's `bytes` at mine. */
int transport_gather(Transport *transport, void *all, const void *mine, size_t bytes);
int transport_barrier(Transport *transport);

/* A transport between some ranks of another: member[i], ascending and with the caller's own among
 * them, is its rank i.  Any two ranks may share one such group at most, for messages of groups use
 * the channels of the whole, which must outlive it; freeing it leaves the whole open.  NULL and an
 * error when memory runs out. */
Transport *transport_group(Transport *whole, const int *member, int members);

/* ---- for those that carry messages: what they say alike ---- */

/* Who failed, when `missing` does not come: it may wait for another itself.  waits_for returns the
 * rank that one waits for, -1 where it waits for none or says nothing any more; NULL: nobody can be
 * asked. */
int transport_failed_rank(Transport *transport, int missing,
                          int (*waits_for)(Transport *transport, int rank));
/* Each sets the error and returns -1: after timeout_s the rank has not come (`what`: "to send a
 * message"); a message is not as long as it should be. */
int transport_timed_out(const Transport *transport, int failed_rank, const char *what);
int transport_wrong_length(const Transport *transport, int peer, size_t sent, size_t expected);
/* What the others report when this rank aborts. */
typedef char AbortLine[400];
void transport_abort_line(AbortLine line, const Transport *transport, const char *why);

/* Ranks as threads of this process: fills transport[ranks], each to be used by one thread and freed
 * by it.  A channel holds up to `capacity` messages.  message_free (may be NULL) frees messages of
 * a device that were never received.  -1 and an error when memory runs out. */
int transport_local_create(Transport **transport, int ranks, int capacity, double timeout_s,
                           void (*message_free)(void *message));

#endif
