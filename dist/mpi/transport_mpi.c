/* The transport between processes, by MPI.  This is a library of its own, which the program loads
 * when it is asked for (experiments/train/modules.h) and otherwise does without MPI.
 *
 * Schedules send before the receiver is ready, so values and gradients are copied, and the sender
 * does not wait.  Whoever holds the lock advances the transfers in progress (pending.h): the rank
 * while it waits, or a thread of its own while the rank computes. */
#include "transport_mpi.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../ref/base/clock.h"
#include "../../ref/base/error.h"
#include "pending.h"

/* Messages between the transports themselves, with a tag of their own. */
typedef enum {
    CONTROL_ABORT,   /* the sender's transport is broken */
    CONTROL_QUERY,   /* asks for a CONTROL_REPLY */
    CONTROL_REPLY,   /* the sender runs */
    CONTROL_REPORTS, /* the sender is going to report the failure */
    CONTROL_REPORTED /* it has done so */
} ControlKind;
typedef struct {
    ControlKind kind;
    int rank;      /* CONTROL_REPLY: whom the sender waits for, or NOBODY */
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
    bool broken; /* only control messages follow */
    AbortLine why;
    pthread_t progress_thread;
    bool ends;
} MpiTransport;

/* The state of MPI in this process.  What is known of a failure outlives the transport, because the
 * program reports it after that is freed. */
static struct {
    bool started;
    int open; /* transports */
    bool broken;
    bool unsafe;            /* MPI may still use memory that is freed, and is not called any more */
    bool reports;           /* this rank reports the failure */
    bool claimed, reported; /* another rank is going to, or has done so */
} world;

static MpiTransport *of(Transport *transport) { return (MpiTransport *)(void *)transport; }

/* ---- control messages ---- */

static int send_control(MpiTransport *mpi, int to, ControlMessage message) {
    if (world.unsafe) return 0;
    Transfer t = transport_send(to, (Channel)TAG_CONTROL, &message, sizeof message);
    return pending_add(&mpi->pending, &t, true);
}

/* Sends a message to all other ranks, and waits a moment until it is sent, because the process may
 * end next.  A rank that it cannot be sent to is left out. */
static void tell_all(const Transport *transport, ControlMessage message) {
    PendingTransfers sends = {.end = &sends.first};
    bool left = true;
    if (world.unsafe) return;
    for (int r = 0; r < transport->ranks; r++) {
        Transfer t = transport_send(r, (Channel)TAG_CONTROL, &message, sizeof message);
        if (r != transport->rank) pending_add(&sends, &t, true);
    }
    for (const double until = clock_seconds() + 1; left && clock_seconds() < until;) {
        left = false;
        for (PendingTransfer *m = sends.first; m; m = m->next)
            if (pending_test(transport, m) == 0) left = true;
    }
    if (!left) pending_free(&sends); /* otherwise MPI may still read them */
}

/* Marks the transport as broken.  Receives that have not begun are cancelled. */
static void set_broken(MpiTransport *mpi, const char *why) {
    mpi->broken = world.broken = true;
    snprintf(mpi->why, sizeof mpi->why, "%s", why);
    for (PendingTransfer *m = mpi->pending.first; m; m = m->next)
        if (!m->t.send && m->request != MPI_REQUEST_NULL) MPI_Cancel(&m->request);
}

/* Waits a moment until the transfers that have begun are over.  The caller frees their memory soon,
 * and MPI would use it when it is called once more. */
static void finish_transfers(MpiTransport *mpi) {
    bool left = true;
    for (const double until = clock_seconds() + 1; left && clock_seconds() < until;) {
        left = false;
        for (PendingTransfer *m = mpi->pending.first; m; m = m->next) {
            int over = 1;
            if (!m->copied) MPI_Test(&m->request, &over, MPI_STATUS_IGNORE);
            left |= !over;
        }
    }
    world.unsafe |= left;
}

/* Marks the transport as broken and tells the other ranks. */
static void break_transport(MpiTransport *mpi, const char *why) {
    if (mpi->broken) return;
    set_broken(mpi, why);
    ControlMessage message = {.kind = CONTROL_ABORT};
    memcpy(message.why, mpi->why, sizeof message.why);
    tell_all(&mpi->base, message);
    finish_transfers(mpi);
}

/* Acts on a message of another rank.  -1 if the transport is broken now. */
static int act_on(MpiTransport *mpi, const ControlMessage *message, int from) {
    switch (message->kind) {
        case CONTROL_ABORT:
            if (mpi->broken) return 0; /* the first failure counts */
            set_broken(mpi, message->why);
            finish_transfers(mpi);
            return -1;
        case CONTROL_QUERY:
            return send_control(mpi, from,
                                (ControlMessage){.kind = CONTROL_REPLY, .rank = mpi->waits_for});
        case CONTROL_REPLY:
            mpi->reply = message->rank;
            world.claimed |= mpi->broken && from < mpi->base.rank;
            return 0;
        case CONTROL_REPORTS:
            world.claimed = true;
            return 0;
        case CONTROL_REPORTED:
            world.claimed = world.reported = true;
            return 0;
    }
    return error_set("transport: unknown message %d from rank %d", (int)message->kind, from);
}

static int receive_control(MpiTransport *mpi) {
    while (!world.unsafe) {
        int there = 0;
        MPI_Status from;
        ControlMessage message;
        if (mpi_check(MPI_Iprobe(MPI_ANY_SOURCE, TAG_CONTROL, MPI_COMM_WORLD, &there, &from)))
            return -1;
        if (!there) return 0;
        if (mpi_check(MPI_Recv(&message, sizeof message, MPI_BYTE, from.MPI_SOURCE, TAG_CONTROL,
                               MPI_COMM_WORLD, MPI_STATUS_IGNORE)))
            return -1;
        if (act_on(mpi, &message, from.MPI_SOURCE)) return -1;
    }
    return 0;
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
    const double until = clock_seconds() + fmin(transport->timeout_s / 2, 5);
    mpi->reply = NO_REPLY;
    if (send_control(mpi, rank, (ControlMessage){.kind = CONTROL_QUERY})) return NOBODY;
    for (int times = 0; mpi->reply == NO_REPLY && clock_seconds() < until; times++) {
        if (progress(mpi, &waited)) return NOBODY;
        pause_polling(mpi, times);
    }
    return mpi->reply;
}

/* Waits until nothing is left that the rank waits for.  The lock is held. */
static int wait_all(MpiTransport *mpi) {
    const PendingTransfer *waited;
    const double until = clock_seconds() + mpi->base.timeout_s;
    for (int times = 0; progress(mpi, &waited) == 0; times++) {
        if (!waited) return 0;
        int missing = mpi->waits_for = waited->t.peer;
        const char *what = waited->t.send ? "to take a message" : "to send a message";
        if (clock_seconds() >= until) {
            int failed_rank = transport_failed_rank(&mpi->base, missing, mpi_waits_for);
            transport_timed_out(&mpi->base, failed_rank, what);
            /* Unless another rank has done so meanwhile. */
            break_transport(mpi, error_message());
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

/* Receives control messages until *flag is set.  Returns *flag. */
static bool await(MpiTransport *mpi, const bool *flag, double seconds) {
    static const struct timespec moment = {0, 1000000};
    /* A signal may end the pause early: mpirun sends SIGTERM to the ranks that are left. */
    for (const double until = clock_seconds() + seconds;; nanosleep(&moment, NULL)) {
        pthread_mutex_lock(&mpi->lock);
        receive_control(mpi);
        pthread_mutex_unlock(&mpi->lock);
        if (*flag || clock_seconds() >= until) return *flag;
    }
}

/* Of the ranks that answer, the lowest reports the failure, whoever found it and whichever rank it
 * names.  One that answers late, because it was computing or stopped, finds that another is going
 * to.  The others wait until it has, because the launcher ends all ranks when the first one
 * leaves. */
static bool mpi_reports(Transport *transport) {
    const double answer_s = transport->rank == 0 ? 0.2 : 5, report_s = 15;
    MpiTransport *mpi = of(transport);
    char error[ERROR_BYTES]; /* the failure's, which a message that cannot come must not replace */
    snprintf(error, sizeof error, "%s", error_message());
    pthread_mutex_lock(&mpi->lock);
    for (int r = 0; r < transport->rank && world.broken; r++)
        send_control(mpi, r, (ControlMessage){.kind = CONTROL_QUERY});
    pthread_mutex_unlock(&mpi->lock);
    world.reports = !world.broken || !await(mpi, &world.claimed, answer_s) ||
                    !await(mpi, &world.reported, report_s);
    if (world.broken && world.reports)
        tell_all(transport, (ControlMessage){.kind = CONTROL_REPORTS});
    error_set("%s", error);
    return world.reports;
}

static void close_transport(MpiTransport *mpi) {
    pthread_mutex_lock(&mpi->lock);
    mpi->ends = true;
    pthread_cond_signal(&mpi->changed);
    pthread_mutex_unlock(&mpi->lock);
    pthread_join(mpi->progress_thread, NULL);
    if (!mpi->broken) pending_free(&mpi->pending); /* otherwise MPI may still read them */
    pthread_cond_destroy(&mpi->changed);
    pthread_mutex_destroy(&mpi->lock);
    free(mpi);
}

/* Waits until all that was sent has been received, because MPI_Finalize demands it. */
static void mpi_free(Transport *transport) {
    MpiTransport *mpi = of(transport);
    pthread_mutex_lock(&mpi->lock);
    for (PendingTransfer *m = mpi->pending.first; m; m = m->next) m->copied = false;
    pthread_mutex_unlock(&mpi->lock);
    if (!mpi->broken) transport_barrier(transport);
    close_transport(mpi);
    world.open--;
}

/* Runs when the process exits.  If a rank is missing, MPI_Finalize would wait for it for ever; then
 * the rank that has reported the failure tells those that wait for this. */
static void leave(void) {
    Transport self = {.rank = 0};
    if (!world.broken && !world.open) MPI_Finalize();
    if (!world.broken || mpi_check(MPI_Comm_rank(MPI_COMM_WORLD, &self.rank)) ||
        mpi_check(MPI_Comm_size(MPI_COMM_WORLD, &self.ranks)))
        return;
    if (world.reports || self.rank == 0)
        tell_all(&self, (ControlMessage){.kind = CONTROL_REPORTED});
}

/* Fills in the rank, and the number of ranks. */
static int join_world(Transport *transport) {
    int threads;
    if (!world.started) {
        if (mpi_check(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &threads))) return -1;
        world.started = true;
        atexit(leave);
    }
    if (mpi_check(MPI_Query_thread(&threads))) return -1;
    if (threads < MPI_THREAD_SERIALIZED)
        return error_set("transport: this MPI was built without threads (MPI_THREAD_SERIALIZED)");
    return mpi_check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)) ||
                   mpi_check(MPI_Comm_rank(MPI_COMM_WORLD, &transport->rank)) ||
                   mpi_check(MPI_Comm_size(MPI_COMM_WORLD, &transport->ranks))
               ? -1
               : 0;
}

/* What may fail on one rank alone comes before MPI_Init, where the launcher still ends the ranks
 * that wait for it. */
Transport *transport_mpi_create(double timeout_s) {
    static const TransportClass class = {
        .sendrecv = mpi_sendrecv, .abort = mpi_abort, .reports = mpi_reports, .free = mpi_free};
    if (world.broken) return error_null("transport: MPI has lost a rank; start all ranks again");
    if (world.open) return error_null("transport: MPI carries one transport at a time");
    MpiTransport *mpi = calloc(1, sizeof *mpi);
    if (!mpi) return error_null("transport: out of memory");
    mpi->base = (Transport){.is = &class, .timeout_s = timeout_s};
    mpi->pending.end = &mpi->pending.first;
    mpi->waits_for = NOBODY;
    pthread_mutex_init(&mpi->lock, NULL);
    pthread_cond_init(&mpi->changed, NULL);
    if (pthread_create(&mpi->progress_thread, NULL, run_progress, mpi)) {
        free(mpi);
        return error_null("transport: no thread for MPI");
    }
    if (join_world(&mpi->base)) {
        close_transport(mpi);
        return NULL;
    }
    world.open++;
    return &mpi->base;
}
