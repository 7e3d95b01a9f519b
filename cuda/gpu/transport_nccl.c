/* Messages between GPUs.  Ahead of each a notice goes over the control transport, and the receiver
 * waits for that first, so that NCCL, which waits on the device and for ever, is only asked for
 * what is on its way.  A sender waits for nobody. */
#include "../transport_nccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../../dist/deadline.h"
#include "../../ref/error.h"
#include "nccl_channels.h"

typedef struct {
    uint64_t bytes;
    bool opens; /* the line, by this id */
    ncclUniqueId id;
} Notice;

static NcclTransport *of(Transport *transport) { return (NcclTransport *)(void *)transport; }

static bool is_message(const Transfer *t) { return t->send ? t->message != NULL : !t->data; }

/* ---- messages -----------------------------------------------------------------------------------
 */

/* An exchange's messages: what is said of them, and where they go. */
typedef struct {
    int count;
    Transfer **t;
    Notice *notice;
    Parcel *parcel;
    Parcel **now;    /* those to be started at once */
    Transfer *batch; /* over the control transport */
} Batch;

static void batch_close(Batch *b) {
    free(b->t);
    free(b->notice);
    free(b->parcel);
    free(b->now);
    free(b->batch);
}

static int batch_open(Batch *b, Transfer *transfers, int count) {
    size_t room = (size_t)count + 1;
    *b = (Batch){.t = calloc(room, sizeof *b->t),
                 .notice = calloc(room, sizeof *b->notice),
                 .parcel = calloc(room, sizeof *b->parcel),
                 .now = calloc(room, sizeof *b->now),
                 .batch = calloc(room, sizeof *b->batch)};
    if (!b->t || !b->notice || !b->parcel || !b->now || !b->batch)
        return error_set("transport: out of memory for %d messages", count);
    for (int i = 0; i < count; i++) {
        b->batch[i] = transfers[i];
        if (!is_message(&transfers[i])) continue;
        b->batch[i].message = NULL;
        b->batch[i].data = &b->notice[b->count];
        b->batch[i].bytes = sizeof *b->notice;
        b->t[b->count++] = &transfers[i];
    }
    return 0;
}

/* A send is kept until its receiver has it: freed before, its memory would go to the next message,
 * and the stage's stream would wait for that receiver. */
static void free_taken(NcclTransport *l) {
    int left = 0;
    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < l->sends; i++)
        if (l->sent[i].started && event_over(l->sent[i].message->ready))
            message_free(l->sent[i].message);
        else
            l->sent[left++] = l->sent[i];
    l->sends = left;
    pthread_mutex_unlock(&l->lock);
}

static int reserve_sent(NcclTransport *l, int more) {
    pthread_mutex_lock(&l->lock);
    int room = l->sends + more, failed = 0;
    Parcel *grown = room > l->room ? realloc(l->sent, 2 * (size_t)room * sizeof *grown) : l->sent;
    if (grown) l->sent = grown;
    if (grown && room > l->room) l->room = 2 * room;
    if (!grown && room) failed = error_set("transport: out of memory for %d messages", room);
    pthread_mutex_unlock(&l->lock);
    return failed;
}

/* Finds the line of a send, or begins one, and says so in the notice. */
static int prepare_send(NcclTransport *l, const Transfer *t, Notice *notice, Parcel *p) {
    *p = (Parcel){.line = line_find(l, t), .message = t->message, .send = true};
    notice->bytes = t->bytes;
    notice->opens = !p->line;
    if (p->line) return 0;
    ncclResult_t result = l->nccl->ncclGetUniqueId(&notice->id);
    if (result != ncclSuccess)
        return error_set("transport: NCCL: %s", l->nccl->ncclGetErrorString(result));
    p->line = line_add(l, t, &notice->id);
    if (!p->line) return -1;
    return t->peer == l->base.rank ? line_finish_opening(p->line) : 0;
}

static int prepare_receive(NcclTransport *l, const Transfer *t, const Notice *notice, Parcel *p) {
    if (notice->bytes != t->bytes)
        return error_set("transport: rank %d sent %zu bytes where rank %d expects %zu", t->peer,
                         (size_t)notice->bytes, l->base.rank, t->bytes);
    p->line = line_find(l, t);
    if (!p->line) p->line = line_add(l, t, &notice->id);
    if (!p->line || line_finish_opening(p->line)) return -1;
    p->message = message_new(t->bytes);
    return p->message ? 0 : -1;
}

/* Starts the receives and, on open lines, the sends, all of which are the transport's from now on.
 */
static int start_batch(NcclTransport *l, Batch *b) {
    int now = 0;
    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < b->count; i++) {
        Parcel *p = &b->parcel[i];
        if (p->send) b->t[i]->message = NULL;
        if (p->line->open)
            b->now[now++] = p;
        else
            l->sent[l->sends++] = *p;
        p->line->used = true;
    }
    pthread_mutex_unlock(&l->lock);
    int failed = lines_start(b->now, now);
    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < now; i++)
        if (b->now[i]->send) l->sent[l->sends++] = *b->now[i];
    pthread_mutex_unlock(&l->lock);
    return failed;
}

static int carry(NcclTransport *l, Batch *b, int count) {
    if (reserve_sent(l, b->count)) return -1;
    for (int i = 0; i < b->count; i++)
        if (b->t[i]->send && prepare_send(l, b->t[i], &b->notice[i], &b->parcel[i])) return -1;
    if (l->control->is->sendrecv(l->control, b->batch, count)) return -1;
    for (int i = 0; i < b->count; i++)
        if (!b->t[i]->send && prepare_receive(l, b->t[i], &b->notice[i], &b->parcel[i])) return -1;
    if (start_batch(l, b)) return -1;
    for (int i = 0; i < b->count; i++) {
        Parcel *p = &b->parcel[i];
        if (p->send) continue;
        if (line_settle(p->line, p->message, "to send what it announced")) return -1;
        b->t[i]->message = p->message;
        p->message = NULL;
    }
    return 0;
}

static int nccl_sendrecv(Transport *transport, Transfer *transfers, int count) {
    NcclTransport *l = of(transport);
    Batch b = {0};
    free_taken(l);
    int failed = l->broken || batch_open(&b, transfers, count) || carry(l, &b, count);
    if (failed) {
        if (!l->broken) lines_mark_broken(l, error_message());
        lines_shut(l);
        l->control->is->abort(l->control, l->why); /* unless it was that transport that broke */
        error_set("%s", l->why);
    }
    for (int i = 0; i < b.count; i++)
        if (!b.t[i]->send) message_free(b.parcel[i].message);
    batch_close(&b);
    return failed ? -1 : 0;
}

/* ---- life ---------------------------------------------------------------------------------------
 */

static void nccl_abort(Transport *transport, const char *why) {
    NcclTransport *l = of(transport);
    lines_mark_broken(l, why);
    lines_shut(l);
    l->control->is->abort(l->control, why);
}

static void nccl_free(Transport *transport) {
    NcclTransport *l = of(transport);
    Deadline until = deadline_in(transport->timeout_s);
    struct timespec a_moment = {0, 50000};
    while (!l->broken && l->sends && !deadline_over(until)) {
        free_taken(l);
        nanosleep(&a_moment, NULL);
    }
    if (l->sends) lines_mark_broken(l, "transport: messages were never received");
    if (l->broken) lines_shut(l);
    lines_close(l);
    for (int i = 0; i < l->sends; i++) message_free(l->sent[i].message);
    free(l->sent);
    pthread_mutex_destroy(&l->lock);
    message_users_remove();
    l->control->is->free(l->control);
    free(l);
}

Transport *transport_nccl_create(Transport *control) {
    static const TransportClass class = {
        .sendrecv = nccl_sendrecv, .abort = nccl_abort, .free = nccl_free};
    NcclTransport *l = calloc(1, sizeof *l);
    if (!l) error_set("transport: out of memory");
    if (!l || device_open() || !(l->nccl = nccl_library_open())) {
        control->is->abort(control, error_message());
        control->is->free(control);
        free(l);
        return NULL;
    }
    message_users_add();
    pthread_mutex_init(&l->lock, NULL);
    l->base = *control;
    l->base.is = &class;
    l->base.carries_messages = true;
    l->control = control;
    return &l->base;
}
