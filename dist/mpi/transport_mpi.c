/* The transport between processes, by MPI.  This is a library of its own, which the program loads
 * when it is asked for (experiments/train/modules.h) and otherwise does without MPI.
 *
 * Schedules send before the receiver is ready, so values and gradients are copied, and the sender
 * does not wait.  Whoever holds the lock advances the transfers in progress (pending.h): the rank
 * while it waits, or a thread of its own while the rank computes. */
#include "transport_mpi.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../ref/base/error.h"
#include "../deadline.h"
#include "pending.h"

/* Messages between the transports themselves, with a tag of their own. */
typedef enum { CONTROL_ABORT, CONTROL_QUERY, CONTROL_REPLY } ControlKind;
typedef struct {
    ControlKind kind;
    int waits_for; /* CONTROL_REPLY: a rank or NOBODY */
    AbortLine why; /* CONTROL_ABORT */
} ControlMessage;
enum { TAG_CONTROL = CHANNELS, NOBODY = -1, NO_REPLY = -2 };

typedef struct {
    Transport base;
    pthread_mutex_t lock; /* protects all that follows, and calls of MPI */
    pthread_cond_t changed;
    PendingTransfers pending;
    bool inside; /* the rank is in a sendrecv and advances the transfers itself */
    int waits_for, reply;
    bool broken; /* MPI is no longer called */
    AbortLine why;
    pthread_t progress_thread;
    bool ends;
} MpiTransport;

/* The state of MPI in this process. */
static struct {
    bool started, broken;
    int open; /* transports */
} world;

static MpiTransport *of(Transport *transport) { return (MpiTransport *)(void *)transport; }

/* ---- control messages ---- */

static int send_control(MpiTransport *mpi, int to, ControlMessage message) {
    Transfer t = transport_send(to, (Channel)TAG_CONTROL, &message, sizeof message);
    return pending_add(&mpi->pending, &t, true);
}

/* Marks the transport as broken and tells the other ranks.  Waits a moment until its messages
 * are sent, because the process may end next. */
static void break_transport(MpiTransport *mpi, const char *why) {
    if (mpi->broken) return;
    mpi->broken = world.broken = true;
    snprintf(mpi->why, sizeof mpi->why, "%s", why);
    ControlMessage message = {.kind = CONTROL_ABORT};
    memcpy(message.why, mpi->why, sizeof message.why);
    PendingTransfer **own = mpi->pending.end;
    for (int r = 0; r < mpi->base.ranks; r++)
        if (r != mpi->base.rank)
            send_control(mpi, r, message); /* one that cannot be sent is left out */
    bool left = true;
    for (Deadline until = deadline_in(1); left && !deadline_over(until);) {
        left = false;
        for (PendingTransfer *m = *own; m; m = m->next)
            if (pending_test(&mpi->base, m) == 0) left = true;
    }
}

static int receive_control(MpiTransport *mpi) {
    for (;;) {
        int there = 0;
        MPI_Status from;
        ControlMessage message;
        if (mpi_check(MPI_Iprobe(MPI_ANY_SOURCE, TAG_CONTROL, MPI_COMM_WORLD, &there, &from)))
            return -1;
        if (!there) return 0;
        if (mpi_check(MPI_Recv(&message, sizeof message, MPI_BYTE, from.MPI_SOURCE, TAG_CONTROL,
                               MPI_COMM_WORLD, MPI_STATUS_IGNORE)))
            return -1;
        if (message.kind == CONTROL_ABORT) {
            mpi->broken = world.broken = true;
            memcpy(mpi->why, message.why, sizeof mpi->why);
            return -1;
        }
        ControlMessage reply = {.kind = CONTROL_REPLY, .waits_for = mpi->waits_for};
        if (message.kind == CONTROL_REPLY) mpi->reply = message.waits_for;
        if (message.kind == CONTROL_QUERY && send_control(mpi, from.MPI_SOURCE, reply)) return -1;
    }
}

/* Receives control messages and advances all transfers.  The lock is held.  Returns -1 if the
 * transport is broken; mpi->why says why. */
static int progress(MpiTransport *mpi, const PendingTransfer **waited) {
    if (mpi->broken) return -1;
    if (receive_control(mpi) == 0 && pending_advance(&mpi->base, &mpi->pending, waited) == 0)
        return 0;
    break_transport(mpi, error_message());
    return -1;
}

/* ---- waiting ---- */

/* Releases the lock for a moment, and if the wait takes longer also the processor. */
static void pause_polling(MpiTransport *mpi, int times) {
    struct timespec t = {0, times < 200 ? 50000 : 200000};
    pthread_mutex_unlock(&mpi->lock);
    if (times > 50) nanosleep(&t, NULL);
    pthread_mutex_lock(&mpi->lock);
}

/* Asks a rank whom it waits for.  A rank answers while it waits itself. */
static int mpi_waits_for(Transport *transport, int rank) {
    MpiTransport *mpi = of(transport);
    const PendingTransfer *waited;
    Deadline until = deadline_in(transport->timeout_s < 2 ? transport->timeout_s / 2 : 1);
    mpi->reply = NO_REPLY;
    if (send_control(mpi, rank, (ControlMessage){.kind = CONTROL_QUERY})) return NOBODY;
    for (int times = 0; mpi->reply == NO_REPLY && !deadline_over(until); times++) {
        if (progress(mpi, &waited)) return NOBODY;
        pause_polling(mpi, times);
    }
    return mpi->reply;
}

/* Waits until nothing is left that the rank waits for.  The lock is held. */
static int wait_all(MpiTransport *mpi) {
    const PendingTransfer *waited;
    Deadline until = deadline_in(mpi->base.timeout_s);
    for (int times = 0; progress(mpi, &waited) == 0; times++) {
        if (!waited) return 0;
        int missing = mpi->waits_for = waited->t.peer;
        const char *what = waited->t.send ? "to take a message" : "to send a message";
        if (deadline_over(until)) {
            int failed_rank = transport_failed_rank(&mpi->base, missing, mpi_waits_for);
            transport_timed_out(&mpi->base, failed_rank, what);
            break_transport(mpi, error_message()); /* unless another rank has done so meanwhile */
        }
        pause_polling(mpi, times);
    }
    break_transport(mpi, error_message());
    return error_set("%s", mpi->why);
}

static int mpi_sendrecv(Transport *transport, Transfer *transfers, int count) {
    MpiTransport *mpi = of(transport);
    int failed = 0;
    pthread_mutex_lock(&mpi->lock);
    mpi->inside = true;
    for (int i = 0; i < count && !failed && !mpi->broken; i++)
        failed = pending_add(&mpi->pending, &transfers[i],
                             transfers[i].send && transfers[i].channel != CHANNEL_COLLECTIVE);
    if (failed) break_transport(mpi, error_message());
    failed = wait_all(mpi);
    mpi->inside = false;
    mpi->waits_for = NOBODY;
    if (mpi->pending.first) pthread_cond_signal(&mpi->changed);
    pthread_mutex_unlock(&mpi->lock);
    return failed;
}

/* Runs in a thread of its own and advances sends while the rank computes. */
static void *run_progress(void *argument) {
    MpiTransport *mpi = argument;
    const PendingTransfer *waited;
    pthread_mutex_lock(&mpi->lock);
    for (int times = 0; !mpi->ends; times++) {
        if (mpi->inside || !mpi->pending.first || progress(mpi, &waited)) {
            pthread_cond_wait(&mpi->changed, &mpi->lock);
            times = 0;
        } else {
            pause_polling(mpi, times);
        }
    }
    pthread_mutex_unlock(&mpi->lock);
    return NULL;
}

/* ---- create and destroy ---- */

static void mpi_abort(Transport *transport, const char *why) {
    MpiTransport *mpi = of(transport);
    AbortLine line;
    transport_abort_line(line, transport, why);
    pthread_mutex_lock(&mpi->lock);
    break_transport(mpi, line);
    pthread_mutex_unlock(&mpi->lock);
}

/* Waits until all that was sent has been received, because MPI_Finalize demands it. */
static void mpi_free(Transport *transport) {
    MpiTransport *mpi = of(transport);
    pthread_mutex_lock(&mpi->lock);
    for (PendingTransfer *m = mpi->pending.first; m; m = m->next) m->copied = false;
    pthread_mutex_unlock(&mpi->lock);
    if (!mpi->broken) transport_barrier(transport);
    pthread_mutex_lock(&mpi->lock);
    mpi->ends = true;
    pthread_cond_signal(&mpi->changed);
    pthread_mutex_unlock(&mpi->lock);
    pthread_join(mpi->progress_thread, NULL);
    pending_free(&mpi->pending);
    pthread_cond_destroy(&mpi->changed);
    pthread_mutex_destroy(&mpi->lock);
    free(mpi);
    world.open--;
}

/* Runs when the process exits.  If a rank is missing, MPI_Finalize would wait for it for ever. */
static void leave(void) {
    if (!world.broken && !world.open) MPI_Finalize();
}

static int start_mpi(void) {
    int threads = MPI_THREAD_SINGLE;
    if (world.broken) return error_set("transport: MPI has lost a rank; start all ranks again");
    if (world.open) return error_set("transport: MPI carries one transport at a time");
    if (world.started) return 0;
    if (mpi_check(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &threads))) return -1;
    world.started = true;
    atexit(leave);
    if (threads < MPI_THREAD_SERIALIZED)
        return error_set("transport: this MPI was built without threads (MPI_THREAD_SERIALIZED)");
    return mpi_check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
}

Transport *transport_mpi_create(double timeout_s) {
    static const TransportClass class = {
        .sendrecv = mpi_sendrecv, .abort = mpi_abort, .free = mpi_free};
    if (start_mpi()) return NULL;
    MpiTransport *mpi = calloc(1, sizeof *mpi);
    if (!mpi) return error_null("transport: out of memory");
    mpi->base = (Transport){.is = &class, .timeout_s = timeout_s};
    mpi->pending.end = &mpi->pending.first;
    mpi->waits_for = NOBODY;
    pthread_mutex_init(&mpi->lock, NULL);
    pthread_cond_init(&mpi->changed, NULL);
    int failed = mpi_check(MPI_Comm_rank(MPI_COMM_WORLD, &mpi->base.rank)) ||
                 mpi_check(MPI_Comm_size(MPI_COMM_WORLD, &mpi->base.ranks));
    if (!failed && pthread_create(&mpi->progress_thread, NULL, run_progress, mpi))
        failed = error_set("transport: no thread for MPI");
    if (!failed) {
        world.open++;
        return &mpi->base;
    }
    free(mpi);
    return NULL;
}
