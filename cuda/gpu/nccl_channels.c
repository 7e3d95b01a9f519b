#include "nccl_channels.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../../dist/deadline.h"
#include "../../ref/error.h"

/* ---- waiting ------------------------------------------------------------------------------------
 */

static void pause_polling(int times) {
    struct timespec t = {0, 50000};
    if (times < 1000)
        sched_yield();
    else
        nanosleep(&t, NULL);
}

static int peer_of(const Line *line) {
    return line->from == line->transport->base.rank ? line->to : line->from;
}

static int check(const Line *line, ncclResult_t result) {
    const NcclTransport *l = line->transport;
    if (result == ncclSuccess || result == ncclInProgress) return 0;
    return error_set("transport: rank %d, NCCL with rank %d: %s (%.200s)", l->base.rank,
                     peer_of(line), l->nccl->ncclGetErrorString(result),
                     l->nccl->ncclGetLastError(line->comm));
}

/* One look: 1: NCCL has done on the host what it was asked for, and has no error; 0; -1. */
static int look(const Line *line) {
    const NcclTransport *l = line->transport;
    ncclResult_t state = ncclInProgress;
    if (l->broken) return error_set("%s", l->why);
    if (check(line, l->nccl->ncclCommGetAsyncError(line->comm, &state)) || check(line, state))
        return -1;
    return state != ncclInProgress;
}

/* Communicators do not block, so that this has an end. */
int line_settle(const Line *line, const DeviceMessage *message, const char *what) {
    const Transport *transport = &line->transport->base;
    Deadline until = deadline_in(transport->timeout_s);
    for (int times = 0;; times++) {
        int done = look(line);
        if (done > 0 && message) done = event_over(message->ready);
        if (done) return done < 0 ? -1 : 0;
        if (deadline_over(until))
            return error_set(
                "transport: rank %d waited %g s for rank %d (%s); it has died or hangs",
                transport->rank, transport->timeout_s, peer_of(line), what);
        pause_polling(times);
    }
}

/* ---- lines --------------------------------------------------------------------------------------
 */

Line *line_find(const NcclTransport *l, const Transfer *t) {
    int from = t->send ? l->base.rank : t->peer, to = t->send ? t->peer : l->base.rank;
    for (Line *line = l->first; line; line = line->next)
        if (line->from == from && line->to == to && line->channel == t->channel) return line;
    return NULL;
}

/* (The other rank of a line is its 0 or 1; that of a line to itself is 0.) */
static ncclResult_t start(const Parcel *p) {
    const Line *line = p->line;
    const NcclLibrary *nccl = line->transport->nccl;
    int other = p->send && line->from != line->to;
    void *data = p->message->data;
    size_t bytes = p->message->bytes;
    return p->send ? nccl->ncclSend(data, bytes, ncclInt8, other, line->comm, line->stream)
                   : nccl->ncclRecv(data, bytes, ncclInt8, other, line->comm, line->stream);
}

int lines_start(Parcel *const *parcel, int parcels) {
    if (!parcels) return 0;
    const NcclLibrary *nccl = parcel[0]->line->transport->nccl;
    for (int i = 0; i < parcels; i++)
        stream_wait_event(parcel[i]->line->stream, parcel[i]->message->ready);
    int failed = check(parcel[0]->line, nccl->ncclGroupStart());
    for (int i = 0; i < parcels && !failed; i++) failed = check(parcel[i]->line, start(parcel[i]));
    failed = check(parcel[0]->line, nccl->ncclGroupEnd()) || failed;
    for (int i = 0; i < parcels && !failed; i++) {
        failed = line_settle(parcel[i]->line, NULL, "to join by NCCL");
        event_record(parcel[i]->message->ready, parcel[i]->line->stream);
        parcel[i]->started = true;
    }
    return failed ? -1 : 0;
}

void lines_mark_broken(NcclTransport *l, const char *why) {
    pthread_mutex_lock(&l->lock);
    if (!l->broken) snprintf(l->why, sizeof l->why, "%s", why);
    l->broken = true;
    pthread_mutex_unlock(&l->lock);
}

/* Locked: the first message that was sent on a line and is not started.  NULL: none. */
static Parcel *find_kept(const Line *line) {
    NcclTransport *l = line->transport;
    for (int i = 0; i < l->sends; i++)
        if (l->sent[i].line == line && !l->sent[i].started) return &l->sent[i];
    return NULL;
}

/* Sends on what was kept: the first message, too, waits for its receiver on the host, for NCCL
 * connects the two then.  When nothing is left the line is open. */
static int send_kept(Line *line) {
    NcclTransport *l = line->transport;
    for (int times = 0;; times++) {
        pthread_mutex_lock(&l->lock);
        Parcel *kept = find_kept(line), copy = kept ? *kept : (Parcel){0}, *one = &copy;
        line->open = !kept && line->used;
        bool open = line->open;
        pthread_mutex_unlock(&l->lock);
        if (open) return 0;
        if (!kept) {
            if (look(line) < 0) return -1;
            pause_polling(times);
            continue;
        }
        if (lines_start(&one, 1)) return -1;
        pthread_mutex_lock(&l->lock);
        find_kept(line)->started = true;
        pthread_mutex_unlock(&l->lock);
    }
}

static void *open_line(void *argument) {
    Line *line = argument;
    if (device_open() || line_settle(line, NULL, "to join by NCCL") || send_kept(line))
        lines_mark_broken(line->transport, error_message());
    return NULL;
}

Line *line_add(NcclTransport *l, const Transfer *t, const ncclUniqueId *id) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    Line *line = calloc(1, sizeof *line);
    if (!line) {
        error_set("transport: out of memory");
        return NULL;
    }
    *line = (Line){.next = l->first,
                   .transport = l,
                   .from = t->send ? l->base.rank : t->peer,
                   .to = t->send ? t->peer : l->base.rank,
                   .channel = t->channel};
    l->first = line;
    bool self = line->from == line->to;
    line->stream = stream_create();
    if (!line->stream) return NULL;
    if (check(line, l->nccl->ncclCommInitRankConfig(&line->comm, self ? 1 : 2, *id,
                                                    !t->send && !self, &config)))
        return NULL;
    if (self || !t->send) return line;
    line->has_opener = pthread_create(&line->opener, NULL, open_line, line) == 0;
    if (!line->has_opener) error_set("transport: no thread for NCCL");
    return line->has_opener ? line : NULL;
}

int line_finish_opening(Line *line) {
    if (line->open) return 0;
    if (line_settle(line, NULL, "to join by NCCL")) return -1;
    line->open = true;
    return 0;
}

static void stop_openers(NcclTransport *l) {
    for (Line *line = l->first; line; line = line->next) {
        if (line->has_opener) pthread_join(line->opener, NULL);
        line->has_opener = false;
    }
}

void lines_shut(NcclTransport *l) {
    if (l->shut) return;
    l->shut = true;
    stop_openers(l);
    for (Line *line = l->first; line; line = line->next) {
        if (line->comm) l->nccl->ncclCommAbort(line->comm);
        line->comm = NULL;
    }
}

/* Both ranks of a line end it together: all are begun before any is waited for. */
void lines_close(NcclTransport *l) {
    stop_openers(l);
    for (Line *line = l->first; line; line = line->next)
        if (line->comm) l->nccl->ncclCommFinalize(line->comm);
    while (l->first) {
        Line *line = l->first;
        l->first = line->next;
        if (line->comm && line_settle(line, NULL, "to end by NCCL") == 0)
            l->nccl->ncclCommDestroy(line->comm);
        else if (line->comm)
            l->nccl->ncclCommAbort(line->comm);
        stream_free(line->stream);
        free(line);
    }
}
