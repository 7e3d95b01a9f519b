/* The transport between threads: channels are queues of copied messages, under one lock and with
 * one condition variable for all of them.  That is simple, and fast enough because training spends
 * its time in the ops. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/error.h"
#include "deadline.h"
#include "transport.h"

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
    int ranks, capacity, users;
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
static int wait_change(Transport *transport, const Deadline *until, int missing, const char *what) {
    Hub *hub = hub_of(transport);
    hub->member[transport->rank].waiting_for = missing;
    int late = hub->broken ? 0 : pthread_cond_timedwait(&hub->changed, &hub->lock, until);
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

/* A transfer in progress. */
typedef struct {
    Transfer *t;
    QueuedMessage *message; /* of a send until it is done, of a receive once it is done */
    bool done;
} LocalTransfer;

static QueuedMessage *copy_message(const Transfer *t) {
    QueuedMessage *m = malloc(sizeof *m + (t->message ? 0 : t->bytes));
    if (!m) {
        error_set("transport: out of memory for a message of %zu bytes", t->bytes);
        return NULL;
    }
    *m = (QueuedMessage){.bytes = t->bytes, .message = t->message};
    if (!t->message) memcpy(m->data, t->data, t->bytes);
    return m;
}

/* Copies the data of all sends. */
static int prepare(LocalTransfer *pending, Transfer *transfers, int count) {
    for (int i = 0; i < count; i++) {
        pending[i].t = &transfers[i];
        if (!transfers[i].send) continue;
        pending[i].message = copy_message(&transfers[i]);
        if (!pending[i].message) return -1;
    }
    return 0;
}

/* Copies received messages to where the caller wants them, and frees all that are left.  The caller
 * keeps a device's message that was not sent. */
static void deliver(LocalTransfer *pending, int count) {
    for (int i = 0; i < count; i++) {
        QueuedMessage *m = pending[i].message;
        if (!m) continue;
        if (pending[i].done && !m->message) memcpy(pending[i].t->data, m->data, m->bytes);
        if (pending[i].done) pending[i].t->message = m->message;
        free(m);
    }
}

/* Tries one transfer.  The lock is held.  Returns 1 if it is done, 0 if that is not possible yet,
 * or -1 and an error. */
static int try_transfer(Transport *transport, LocalTransfer *pending) {
    Hub *hub = hub_of(transport);
    Queue *queue = queue_of(transport, pending->t);
    if (pending->t->send) {
        if (queue->count == hub->capacity) return 0;
        *queue->end = pending->message;
        queue->end = &pending->message->next;
        queue->count++;
        pending->message = pending->t->message = NULL;
    } else {
        QueuedMessage *m = queue->first;
        if (!m) return 0;
        if (m->bytes != pending->t->bytes)
            return transport_wrong_length(transport, pending->t->peer, m->bytes, pending->t->bytes);
        queue->first = m->next;
        if (!m->next) queue->end = &queue->first;
        queue->count--;
        pending->message = m;
    }
    pending->done = true;
    pthread_cond_broadcast(&hub->changed);
    return 1;
}

/* Tries all transfers of a batch once.  The lock is held.  Those of one channel stay in order,
 * because if one is not possible, no later one is.  Returns how many are left and sets *first to
 * the first of them, or returns -1 and an error. */
static int try_batch(Transport *transport, LocalTransfer *pending, int count, int *first) {
    int left = 0;
    for (int i = 0; i < count; i++) {
        if (pending[i].done) continue;
        int result = try_transfer(transport, &pending[i]);
        if (result < 0) return -1;
        if (!result && left++ == 0) *first = i;
    }
    return left;
}

/* Messages are copied without holding the lock. */
static int local_sendrecv(Transport *transport, Transfer *transfers, int count) {
    Hub *hub = hub_of(transport);
    LocalTransfer *pending = calloc((size_t)count + 1, sizeof *pending);
    if (!pending) return error_set("transport: out of memory for %d messages", count);
    int left, before = count, first = 0, failed = prepare(pending, transfers, count);
    Deadline until = deadline_in(transport->timeout_s);
    pthread_mutex_lock(&hub->lock);
    if (!failed && hub->broken) failed = error_set("%s", hub->why);
    while (!failed && (left = try_batch(transport, pending, count, &first)) != 0) {
        const Transfer *t = pending[first].t;
        bool moved = left > 0 && left < before; /* then try again before waiting */
        before = left;
        failed = left < 0 ||
                 (!moved && wait_change(transport, &until, t->peer,
                                        t->send ? "to take a message" : "to send a message"));
    }
    if (failed) break_transport(hub, error_message());
    pthread_mutex_unlock(&hub->lock);
    deliver(pending, count);
    free(pending);
    return failed ? -1 : 0;
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
            if (m->message) hub->message_free(m->message);
            free(m);
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

int transport_local_create(Transport **transport, int ranks, int capacity, double timeout_s,
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
    *hub = (Hub){.ranks = ranks,
                 .capacity = capacity,
                 .users = ranks,
                 .message_free = message_free,
                 .queue = queue};
    pthread_mutex_init(&hub->lock, NULL);
    deadline_condition(&hub->changed);
    for (size_t i = 0; i < queues; i++) queue[i].end = &queue[i].first;
    for (int r = 0; r < ranks; r++) {
        hub->member[r] =
            (LocalTransport){{&class, r, ranks, timeout_s, message_free != NULL}, hub, -1};
        transport[r] = &hub->member[r].base;
    }
    return 0;
}
