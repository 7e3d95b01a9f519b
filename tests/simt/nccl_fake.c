/* The part of NCCL that the transport uses, between threads and under SIMT. Streams send and
 * deliver the messages, at once or late, and a group ends when its sends are done. */
#include "nccl_fake.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../../cuda/device.h"
#include "../../cuda/gpu/nccl_library.h"
#include "../../cuda/simt/engine.h"
#include "../../cuda/simt/late.h"
#include "../../ref/base/error.h"

typedef struct Sent {
    struct Sent *next;
    size_t bytes;
    char data[];
} Sent;

/* The channel from one rank to another, or to itself, found by the id of its communicator. */
typedef struct Channel {
    struct Channel *next;
    int id, ranks, joined, left;
    int waiting; /* sends that have not been received */
    Sent *first, **end;
} Channel;

struct ncclComm {
    Channel *channel;
};

typedef struct {
    ncclComm_t comm;
    const void *from;
    void *to;
    size_t bytes;
    Stream stream;
} Asked;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Channel *channels;
static int last_id;
static _Thread_local Asked asked[64]; /* in the group so far */
static _Thread_local int asks, aborted;
static _Thread_local bool in_group;
static atomic_int hung;
static _Thread_local Channel *sends_on[4]; /* of this rank; NULL: none */

static void note_sender(Channel *from, Channel *to) {
    for (int i = 0; i < 4; i++)
        if (sends_on[i] == from) {
            sends_on[i] = to;
            return;
        }
}

int nccl_fake_waiting(void) {
    int waiting = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 4; i++) waiting += sends_on[i] ? sends_on[i]->waiting : 0;
    pthread_mutex_unlock(&lock);
    return waiting;
}

int nccl_fake_aborted(void) { return aborted; }
int nccl_fake_hung(void) { return hung; }

static ncclResult_t get_unique_id(ncclUniqueId *id) {
    pthread_mutex_lock(&lock);
    last_id++;
    memset(id, 0, sizeof *id);
    memcpy(id, &last_id, sizeof last_id);
    pthread_mutex_unlock(&lock);
    return ncclSuccess;
}

static ncclResult_t init_rank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                              ncclConfig_t *config) {
    int number;
    memcpy(&number, &id, sizeof number);
    /* The kernels of several communicators must fit on the device together. */
    if (config->maxCTAs == NCCL_CONFIG_UNDEF_INT || config->maxCTAs > 4) return ncclInvalidArgument;
    if (config->blocking || rank >= ranks) return ncclInvalidArgument;
    pthread_mutex_lock(&lock);
    Channel *channel = channels;
    while (channel && channel->id != number) channel = channel->next;
    if (!channel) {
        channel = calloc(1, sizeof *channel);
        *channel = (Channel){.next = channels, .id = number, .ranks = ranks};
        channel->end = &channel->first;
        channels = channel;
    }
    channel->joined++;
    *comm = malloc(sizeof **comm);
    (*comm)->channel = channel;
    pthread_mutex_unlock(&lock);
    return ncclInProgress;
}

static ncclResult_t async_error(ncclComm_t comm, ncclResult_t *state) {
    pthread_mutex_lock(&lock);
    *state = comm->channel->joined < comm->channel->ranks ? ncclInProgress : ncclSuccess;
    pthread_mutex_unlock(&lock);
    return ncclSuccess;
}

static ncclResult_t finalize(ncclComm_t comm) {
    (void)comm;
    return ncclSuccess;
}

/* The last communicator of a channel frees it. */
static ncclResult_t destroy(ncclComm_t comm) {
    Channel *channel = comm->channel, **at = &channels;
    note_sender(channel, NULL);
    pthread_mutex_lock(&lock);
    if (++channel->left == channel->ranks) {
        while (*at != channel) at = &(*at)->next;
        *at = channel->next;
        while (channel->first) {
            Sent *sent = channel->first;
            channel->first = sent->next;
            free(sent);
        }
        free(channel);
    }
    pthread_mutex_unlock(&lock);
    free(comm);
    return ncclSuccess;
}

static ncclResult_t abort_comm(ncclComm_t comm) {
    note_sender(comm->channel, NULL);
    hung += !in_group && nccl_fake_waiting() > 0;
    aborted++;
    late_finish_all(); /* late streams may still put messages on it */
    return destroy(comm);
}

static ncclResult_t group_start(void) {
    asks = 0;
    in_group = true;
    return ncclSuccess;
}

static ncclResult_t ask(const void *from, void *to, size_t bytes, int peer, ncclComm_t comm,
                        cudaStream_t stream) {
    if (asks == 64 || peer >= comm->channel->ranks) return ncclInvalidArgument;
    asked[asks++] = (Asked){comm, from, to, bytes, stream};
    return ncclSuccess;
}

static ncclResult_t send(const void *data, size_t count, ncclDataType_t type, int peer,
                         ncclComm_t comm, cudaStream_t stream) {
    return type == ncclInt8 ? ask(data, NULL, count, peer, comm, stream) : ncclInvalidArgument;
}

static ncclResult_t receive(void *data, size_t count, ncclDataType_t type, int peer,
                            ncclComm_t comm, cudaStream_t stream) {
    return type == ncclInt8 ? ask(NULL, data, count, peer, comm, stream) : ncclInvalidArgument;
}

static void put(const void *closure) {
    const Asked *a = closure;
    Sent *sent = malloc(sizeof *sent + a->bytes);
    *sent = (Sent){.bytes = a->bytes};
    memcpy(sent->data, a->from, a->bytes);
    pthread_mutex_lock(&lock);
    *a->comm->channel->end = sent;
    a->comm->channel->end = &sent->next;
    pthread_mutex_unlock(&lock);
}

/* A message that was sent and is being copied to where it was asked for. */
typedef struct {
    Sent *sent;
    void *to;
    size_t bytes;
} Delivery;

static void deliver(const void *closure) {
    const Delivery *d = closure;
    memcpy(d->to, d->sent->data, d->sent->bytes < d->bytes ? d->sent->bytes : d->bytes);
    free(d->sent);
}

/* Returns the next message, once a stream has sent one; a GPU's streams need nobody to run them. */
static Sent *next_of(Channel *channel) {
    for (;;) {
        pthread_mutex_lock(&lock);
        Sent *sent = channel->first;
        if (sent) {
            channel->first = sent->next;
            channel->waiting--;
        }
        if (!channel->first) channel->end = &channel->first;
        pthread_mutex_unlock(&lock);
        if (sent) return sent;
        if (!late_go_on()) sched_yield();
    }
}

static ncclResult_t take(const Asked *a) {
    Delivery delivery = {next_of(a->comm->channel), a->to, a->bytes};
    ncclResult_t result = delivery.sent->bytes == a->bytes ? ncclSuccess : ncclInvalidUsage;
    simt_submit(a->stream, deliver, &delivery, sizeof delivery);
    return result;
}

static ncclResult_t group_end(void) {
    ncclResult_t result = ncclSuccess;
    in_group = false;
    for (int i = 0; i < asks; i++) {
        if (!asked[i].from) continue;
        Channel *channel = asked[i].comm->channel;
        note_sender(channel, NULL);
        note_sender(NULL, channel);
        pthread_mutex_lock(&lock);
        channel->waiting++;
        pthread_mutex_unlock(&lock);
        simt_submit(asked[i].stream, put, &asked[i], sizeof asked[i]);
    }
    for (int i = 0; i < asks && result == ncclSuccess; i++)
        if (asked[i].to) result = take(&asked[i]);
    return result;
}

static const char *error_string(ncclResult_t result) {
    return result == ncclSuccess ? "no error" : "an error";
}

static const char *last_error(ncclComm_t comm) {
    (void)comm;
    return "of the fake";
}

NcclLibrary nccl = {
    .ncclGetUniqueId = get_unique_id,
    .ncclCommInitRankConfig = init_rank,
    .ncclCommGetAsyncError = async_error,
    .ncclCommFinalize = finalize,
    .ncclCommDestroy = destroy,
    .ncclCommAbort = abort_comm,
    .ncclGroupStart = group_start,
    .ncclGroupEnd = group_end,
    .ncclSend = send,
    .ncclRecv = receive,
    .ncclGetErrorString = error_string,
    .ncclGetLastError = last_error,
};

int nccl_open(void) { return 0; }
