/* The transport between threads: channels are queues of copied messages, under one lock and with
 * one condition variable for all of them.  That is simple, and fast enough because training spends
 * its time in the ops.  A send never waits for its receiver, except in collectives, whose pieces
 * would otherwise fill the memory; of values and gradients at most those of a step are on their
 * way. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/base/clock.h"
#include "../ref/base/error.h"
#include "condition.h"
#include "transport.h"

enum { MAX_PIECES = 4 }; /* of collectives, on their way from one rank to another */

typedef struct QueuedMessage {
    struct QueuedMessage *next;
    size_t bytes;
    void *message; /* of a device; NULL if the message is data */
    max_align_t data[];
} QueuedMessage;

typedef struct {
    QueuedMessage *first, **end;
    int count;
} Queue;

typedef struct {
    Transport base;
    struct Hub *hub;
    int waiting_for; /* a rank that this one waits for, -1: none */
} LocalTransport;

/* Shared by all ranks; the last to leave frees it. */
typedef struct Hub {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int ranks, users;
    void (*message_free)(void *message);
    Queue *queue; /* [from][to][CHANNELS] */
    bool broken;
    AbortLine why;
    LocalTransport member[]; /* [ranks] */
} Hub;

static Hub *hub_of(Transport *base) { return ((LocalTransport *)(void *)base)->hub; }

/* Marks the transport as broken and wakes all ranks.  The lock is held. */
static void break_transport(Hub *hub, const char *why) {
    if (hub->broken) return;
    hub->broken = true;
    snprintf(hub->why, sizeof hub->why, "%s", why);
    pthread_cond_broadcast(&hub->changed);
}

static int local_waits_for(Transport *transport, int rank) {
    return hub_of(transport)->member[rank].waiting_for;
}

/* Sleeps until something changes.  The lock is held.  At the deadline it finds out which rank
 * failed and breaks the transport.  -1 and an error if the transport is broken. */
static int wait_change(Transport *transport, double until, int missing, const char *what) {
    Hub *hub = hub_of(transport);
    hub->member[transport->rank].waiting_for = missing;
    int late = hub->broken ? 0 : condition_wait(&hub->changed, &hub->lock, until);
    if (late == ETIMEDOUT && !hub->broken) {
        transport_timed_out(transport, transport_failed_rank(transport, missing, local_waits_for),
                            what);
        break_transport(hub, error_message());
    }
    hub->member[transport->rank].waiting_for = -1;
    return hub->broken ? error_set("%s", hub->why) : 0;
}

/* ---- messages ---- */

static Queue *queue_of(Transport *transport, const Transfer *t) {
    Hub *hub = hub_of(transport);
    int from = t->send ? transport->rank : t->peer, to = t->send ? t->peer : transport->rank;
    return &hub->queue[(from * hub->ranks + to) * CHANNELS + (int)t->channel];
}

/* Queues a copy of what is sent, or a device's message itself. */
static int send(Transport *transport, Transfer *t) {
    Hub *hub = hub_of(transport);
    Queue *queue = queue_of(transport, t);
    QueuedMessage *m = malloc(sizeof *m + (t->message ? 0 : t->bytes));
    if (!m) return error_set("transport: out of memory for a message of %zu bytes", t->bytes);
    *m = (QueuedMessage){.bytes = t->bytes, .message = t->message};
    if (!t->message) memcpy(m->data, t->data, t->bytes); /* without holding the lock */
    pthread_mutex_lock(&hub->lock);
    int failed = hub->broken ? error_set("%s", hub->why) : 0;
    if (!failed) {
        *queue->end = m;
        queue->end = &m->next;
        queue->count++;
        t->message = NULL;
        pthread_cond_broadcast(&hub->changed);
    }
    pthread_mutex_unlock(&hub->lock);
    if (failed) free(m);
    return failed;
}

/* Waits for the next message of a channel and takes it.  NULL and an error. */
static QueuedMessage *take(Transport *transport, const Transfer *t, double until) {
    Hub *hub = hub_of(transport);
    Queue *queue = queue_of(transport, t);
    int failed = 0;
    pthread_mutex_lock(&hub->lock);
    while (!failed && (hub->broken || !queue->first))
        failed = wait_change(transport, until, t->peer, "to send a message");
    QueuedMessage *m = failed ? NULL : queue->first;
    if (m) {
        queue->first = m->next;
        if (!m->next) queue->end = &queue->first;
        queue->count--;
        pthread_cond_broadcast(&hub->changed);
    }
    pthread_mutex_unlock(&hub->lock);
    return m;
}

static void queued_free(const Hub *hub, QueuedMessage *m) {
    if (m->message) hub->message_free(m->message);
    free(m);
}

static int receive(Transport *transport, Transfer *t, double until) {
    QueuedMessage *m = take(transport, t, until);
    if (!m) return -1;
    int failed =
        m->bytes == t->bytes ? 0 : transport_wrong_length(transport, t->peer, m->bytes, t->bytes);
    if (!failed && !m->message) memcpy(t->data, m->data, m->bytes);
    if (!failed) {
        t->message = m->message;
        m->message = NULL;
    }
    queued_free(hub_of(transport), m);
    return failed;
}

/* Waits until the receiver of a piece has taken most of those before it. */
static int wait_taken(Transport *transport, const Transfer *t, double until) {
    Hub *hub = hub_of(transport);
    int failed = 0;
    pthread_mutex_lock(&hub->lock);
    while (!failed && queue_of(transport, t)->count > MAX_PIECES)
        failed = wait_change(transport, until, t->peer, "to take a message");
    pthread_mutex_unlock(&hub->lock);
    return failed;
}

static int local_sendrecv(Transport *transport, Transfer *transfers, int count) {
    Hub *hub = hub_of(transport);
    const double until = clock_seconds() + transport->timeout_s;
    int failed = 0;
    for (int i = 0; i < count && !failed; i++)
        if (transfers[i].send) failed = send(transport, &transfers[i]);
    for (int i = 0; i < count && !failed; i++)
        if (!transfers[i].send) failed = receive(transport, &transfers[i], until);
    for (int i = 0; i < count && !failed; i++)
        if (transfers[i].send && transfers[i].channel == CHANNEL_COLLECTIVE)
            failed = wait_taken(transport, &transfers[i], until);
    if (!failed) return 0;
    pthread_mutex_lock(&hub->lock);
    break_transport(hub, error_message());
    pthread_mutex_unlock(&hub->lock);
    return -1;
}

/* ---- create and destroy ---- */

static void local_abort(Transport *transport, const char *why) {
    Hub *hub = hub_of(transport);
    AbortLine line;
    transport_abort_line(line, transport, why);
    pthread_mutex_lock(&hub->lock);
    break_transport(hub, line);
    pthread_mutex_unlock(&hub->lock);
}

static void hub_free(Hub *hub) {
    int queues = hub->ranks * hub->ranks * CHANNELS;
    for (int i = 0; i < queues; i++)
        while (hub->queue[i].first) {
            QueuedMessage *m = hub->queue[i].first;
            hub->queue[i].first = m->next;
            queued_free(hub, m);
        }
    free(hub->queue);
    pthread_cond_destroy(&hub->changed);
    pthread_mutex_destroy(&hub->lock);
    free(hub);
}

static void local_free(Transport *transport) {
    Hub *hub = hub_of(transport);
    pthread_mutex_lock(&hub->lock);
    bool last = --hub->users == 0;
    pthread_mutex_unlock(&hub->lock);
    if (last) hub_free(hub);
}

int transport_local_create(Transport **transport, int ranks, double timeout_s,
                           void (*message_free)(void *message)) {
    static const TransportClass class = {
        .sendrecv = local_sendrecv,
        .abort = local_abort,
        .free = local_free,
    };
    size_t queues = (size_t)ranks * (size_t)ranks * CHANNELS;
    Queue *queue = calloc(queues, sizeof *queue);
    Hub *hub = malloc(sizeof *hub + (size_t)ranks * sizeof *hub->member);
    if (!queue || !hub) {
        free(queue);
        free(hub);
        return error_set("transport: out of memory for %d ranks", ranks);
    }
    *hub = (Hub){.ranks = ranks, .users = ranks, .message_free = message_free, .queue = queue};
    pthread_mutex_init(&hub->lock, NULL);
    condition_init(&hub->changed);
    for (size_t i = 0; i < queues; i++) queue[i].end = &queue[i].first;
    for (int r = 0; r < ranks; r++) {
        hub->member[r] = (LocalTransport){.base = {.is = &class,
                                                   .rank = r,
                                                   .ranks = ranks,
                                                   .timeout_s = timeout_s,
                                                   .carries_messages = message_free != NULL},
                                          .hub = hub,
                                          .waiting_for = -1};
        transport[r] = &hub->member[r].base;
    }
    return 0;
}
