/* Messages between the GPUs of a pipeline: values go up to the next rank (from the last rank to the
 * first), and gradients down.
 *
 * Before each message its bytes are sent over the control transport, and the receiver waits for
 * this header first.  So NCCL, which waits on the device and for ever, is only asked for messages
 * that are on their way.  A sender does not wait for its receiver. */
#include "../transport_nccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../../dist/deadline.h"
#include "../../ref/error.h"
#include "nccl_directions.h"

static NcclTransport *of(Transport *transport) { return (NcclTransport *)(void *)transport; }

static bool is_message(const Transfer *t) { return t->send ? t->message != NULL : !t->data; }

/* ---- messages ---- */

/* Frees the messages that their receivers have.  A message freed before that would give its memory
 * to the next one, and the stage's stream would wait for the receiver. */
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

/* Sends and receives at most one message in each direction, headers first.  All go into one group
 * of NCCL, which wants a message of a rank to itself to be received in the group that sends it. */
static int carry(NcclTransport *n, Transfer *t, int count) {
    uint64_t header[DIRECTIONS];
    Transfer announced[DIRECTIONS];
    NcclMove move[DIRECTIONS];
    if (count > DIRECTIONS) return error_set("transport: %d messages at once", count);
    for (int i = 0; i < count; i++) {
        header[i] = t[i].bytes;
        announced[i] = t[i];
        announced[i].data = &header[i];
        announced[i].bytes = sizeof header[i];
        announced[i].message = NULL;
        move[i] = (NcclMove){find_direction(n, &t[i]), t[i].message};
        if (!move[i].direction) return -1;
    }
    if (reserve_sent(n, count) || n->control->is->sendrecv(n->control, announced, count)) return -1;
    for (int i = 0; i < count; i++) {
        if (t[i].send) continue;
        if (header[i] != t[i].bytes)
            return transport_wrong_length(&n->base, t[i].peer, (size_t)header[i], t[i].bytes);
        t[i].message = move[i].message = message_new(t[i].bytes);
        if (!t[i].message) return -1;
    }
    for (int i = 0; i < count; i++) {
        if (!t[i].send) continue;
        n->sent[n->sends++] = t[i].message;
        t[i].message = NULL;
    }
    if (directions_start(n, move, count)) return -1;
    for (int i = 0; i < count; i++)
        if (!t[i].send &&
            direction_settle(n, move[i].direction, move[i].message, "to send what it announced"))
            return -1;
    return 0;
}

static int nccl_sendrecv(Transport *transport, Transfer *transfers, int count) {
    NcclTransport *n = of(transport);
    free_taken(n);
    bool messages = count > 0 && is_message(&transfers[0]);
    int failed = n->broken || (messages ? carry(n, transfers, count)
                                        : n->control->is->sendrecv(n->control, transfers, count));
    if (failed) {
        directions_break(n, error_message());
        n->control->is->abort(n->control, n->why); /* tells the others, unless it broke itself */
        error_set("%s", n->why);
    }
    return failed ? -1 : 0;
}

/* ---- create / destroy ---- */

static void nccl_abort(Transport *transport, const char *why) {
    NcclTransport *n = of(transport);
    directions_break(n, why);
    n->control->is->abort(n->control, why);
}

static void nccl_free(Transport *transport) {
    NcclTransport *n = of(transport);
    Deadline until = deadline_in(transport->timeout_s);
    struct timespec moment = {0, 50000};
    while (!n->broken && n->sends && !deadline_over(until)) {
        free_taken(n);
        nanosleep(&moment, NULL);
    }
    if (n->sends) directions_break(n, "transport: messages were never received");
    directions_close(n);
    for (int i = 0; i < n->sends; i++) message_free(n->sent[i]);
    free(n->sent);
    message_users_remove();
    n->control->is->free(n->control);
    free(n);
}

Transport *transport_nccl_create(Transport *control) {
    static const TransportClass class = {
        .sendrecv = nccl_sendrecv, .abort = nccl_abort, .free = nccl_free};
    NcclTransport *n = calloc(1, sizeof *n);
    if (!n) error_set("transport: out of memory");
    if (!n || device_open() || nccl_open()) {
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
    if (directions_open(n) == 0) return &n->base;
    AbortLine why;
    snprintf(why, sizeof why, "%s", error_message());
    nccl_abort(&n->base, why);
    nccl_free(&n->base);
    error_set("%s", why);
    return NULL;
}
