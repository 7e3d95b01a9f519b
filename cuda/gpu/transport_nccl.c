/* Messages between the GPUs of a pipeline: values go up to the next rank (from the last rank to the
 * first), and gradients down.
 *
 * Before each message a header is sent over the control transport, and the receiver waits for it
 * first.  So NCCL, which waits on the device and for ever, is only asked for messages that are on
 * their way.  A sender does not wait for its receiver. */
#include "../transport_nccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../../dist/deadline.h"
#include "../../ref/error.h"
#include "nccl_directions.h"

typedef struct {
    uint64_t bytes;
} Header;

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

/* The messages of an exchange, their headers, and what is sent over the control transport. */
typedef struct {
    int count; /* messages */
    Transfer **message;
    Header *header;
    NcclMove *move;
    Transfer *controlled; /* all transfers, headers in place of messages */
} NcclBatch;

static void batch_close(NcclBatch *b) {
    free(b->message);
    free(b->header);
    free(b->move);
    free(b->controlled);
}

static int batch_open(NcclBatch *b, const NcclTransport *n, Transfer *transfers, int count) {
    size_t most = (size_t)count + 1;
    *b = (NcclBatch){.message = calloc(most, sizeof(Transfer *)),
                     .header = calloc(most, sizeof(Header)),
                     .move = calloc(most, sizeof(NcclMove)),
                     .controlled = calloc(most, sizeof(Transfer))};
    if (!b->message || !b->header || !b->move || !b->controlled)
        return error_set("transport: out of memory for %d messages", count);
    for (int i = 0; i < count; i++) {
        b->controlled[i] = transfers[i];
        if (!is_message(&transfers[i])) continue;
        b->move[b->count] = (NcclMove){find_direction(n, &transfers[i]), transfers[i].message};
        if (!b->move[b->count].direction) return -1;
        b->header[b->count].bytes = transfers[i].bytes;
        b->controlled[i].message = NULL;
        b->controlled[i].data = &b->header[b->count];
        b->controlled[i].bytes = sizeof(Header);
        b->message[b->count++] = &transfers[i];
    }
    return 0;
}

/* Allocates messages for the receives.  Fails when a header announces another length than expected.
 */
static int prepare_receives(const NcclTransport *n, NcclBatch *b) {
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

/* Takes over the messages to send from their callers. */
static void take_sends(NcclTransport *n, NcclBatch *b) {
    for (int i = 0; i < b->count; i++)
        if (b->message[i]->send) {
            n->sent[n->sends++] = b->message[i]->message;
            b->message[i]->message = NULL;
        }
}

static int carry(NcclTransport *n, NcclBatch *b, int count) {
    if (reserve_sent(n, b->count) || n->control->is->sendrecv(n->control, b->controlled, count) ||
        prepare_receives(n, b))
        return -1;
    take_sends(n, b);
    if (directions_start(n, b->move, b->count)) return -1;
    for (int i = 0; i < b->count; i++) {
        NcclMove *m = &b->move[i];
        if (m->direction->send) continue;
        if (direction_settle(n, m->direction, m->message, "to send what it announced")) return -1;
        b->message[i]->message = m->message;
        m->message = NULL;
    }
    return 0;
}

static int nccl_sendrecv(Transport *transport, Transfer *transfers, int count) {
    NcclTransport *n = of(transport);
    NcclBatch b = {0};
    free_taken(n);
    int failed = n->broken || batch_open(&b, n, transfers, count) || carry(n, &b, count);
    if (failed) {
        directions_break(n, error_message());
        n->control->is->abort(n->control, n->why); /* tells the others, unless it broke itself */
        error_set("%s", n->why);
    }
    for (int i = 0; i < b.count; i++)
        if (!b.message[i]->send) message_free(b.move[i].message);
    batch_close(&b);
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
