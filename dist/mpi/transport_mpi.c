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
#include "../condition.h"
#include "control.h"
#include "waiting.h"

enum { NO_REPLY = -2 };
static const double answer_s = 5; /* in which a rank that runs answers a CONTROL_QUERY */

typedef struct {
    Transport base;
    pthread_mutex_t lock; /* protects all that follows, and calls of MPI */
    pthread_cond_t changed;
    PendingTransfers pending;
    bool inside; /* the rank is in a sendrecv and advances the transfers itself */
    int waits_for, asked, reply;
    bool broken; /* only control messages follow */
    AbortLine why;
    pthread_t progress_thread;
    bool ends;
} MpiTransport;

/* What is known of who reports a failure. */
typedef enum { HEARD_NOTHING, LOWER_RANK_RUNS, ANOTHER_REPORTS, ANOTHER_HAS_REPORTED } Heard;

/* The state of MPI in this process.  What is known of a failure outlives the transport, because the
 * program reports it after that is freed. */
static struct {
    bool started;
    int open; /* transports */
    bool broken;
    bool unsafe;           /* MPI may still use memory that is freed, and is not called any more */
    bool settled, reports; /* it is settled who reports the failure; this rank does */
    Heard heard;
} world;

static MpiTransport *of(Transport *transport) { return (MpiTransport *)(void *)transport; }

/* ---- control messages ---- */

/* Marks the transport as broken.  Receives that have not begun are cancelled. */
static void set_broken(MpiTransport *mpi, const char *why) {
    mpi->broken = world.broken = true;
    snprintf(mpi->why, sizeof mpi->why, "%s", why);
    for (PendingTransfer *m = mpi->pending.first; m; m = m->next)
        if (!m->t.send && m->request != MPI_REQUEST_NULL) MPI_Cancel(&m->request);
}

static void settle_report(MpiTransport *mpi);

/* Waits a moment until the transfers that have begun are over.  The caller frees their memory soon,
 * and MPI would use it when it is called once more; so whatever needs MPI comes before. */
static void finish_transfers(MpiTransport *mpi) {
    bool left = true;
    for (Waiting wait = waiting_start(); left && waiting_turn(&wait) < 1;) {
        left = false;
        for (PendingTransfer *m = mpi->pending.first; m; m = m->next) {
            int over = 1;
            if (!m->copied) MPI_Test(&m->request, &over, MPI_STATUS_IGNORE);
            left |= !over;
        }
    }
    if (left) settle_report(mpi);
    world.unsafe |= left;
}

/* Marks the transport as broken and tells the other ranks. */
static void break_transport(MpiTransport *mpi, const char *why) {
    if (mpi->broken) return;
    set_broken(mpi, why);
    ControlMessage message = {.kind = CONTROL_ABORT};
    memcpy(message.why, mpi->why, sizeof message.why);
    control_tell_all(&mpi->base, message);
    finish_transfers(mpi);
}

static void hear(Heard what) {
    if (world.heard < what) world.heard = what;
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
            return control_send(&mpi->pending, from,
                                (ControlMessage){.kind = CONTROL_REPLY, .rank = mpi->waits_for});
        case CONTROL_REPLY:
            if (from == mpi->asked) mpi->reply = message->rank;
            if (mpi->broken && from < mpi->base.rank) hear(LOWER_RANK_RUNS);
            return 0;
        case CONTROL_REPORTS:
            hear(ANOTHER_REPORTS);
            return 0;
        case CONTROL_REPORTED:
            hear(ANOTHER_HAS_REPORTED);
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

/* Asks a rank whom it waits for.  Every rank that runs answers. */
static int mpi_waits_for(Transport *transport, int rank) {
    MpiTransport *mpi = of(transport);
    const PendingTransfer *waited;
    Waiting wait = waiting_start();
    mpi->asked = rank;
    mpi->reply = NO_REPLY;
    if (control_send(&mpi->pending, rank, (ControlMessage){.kind = CONTROL_QUERY})) return NOBODY;
    for (int times = 0; mpi->reply == NO_REPLY && waiting_turn(&wait) < answer_s; times++) {
        if (progress(mpi, &waited)) return NOBODY;
        pause_polling(mpi, times);
    }
    return mpi->reply;
}

/* Finds out why a transfer is late.  Breaks the transport, unless the rank that all wait for runs:
 * it may compute, or write a checkpoint, for longer than the timeout. */
static void judge(MpiTransport *mpi, const PendingTransfer *waited, double seconds) {
    const char *what = waited->t.send ? "to take a message" : "to send a message";
    const int peer = waited->t.peer;
    int failed_rank = transport_failed_rank(&mpi->base, peer, mpi_waits_for);
    /* Ranks are asked one after the other, so what looks like a circle may be none. */
    if (mpi->reply == mpi->base.rank)
        failed_rank = transport_failed_rank(&mpi->base, peer, mpi_waits_for);
    const bool runs = mpi->reply == NOBODY;
    if (runs && seconds < BUSY_TIMEOUTS * mpi->base.timeout_s) return;
    /* Meanwhile it may be there, or another rank has broken the transport. */
    if (progress(mpi, &waited) || !waited || waited->t.peer != peer) return;
    if (runs)
        transport_still_busy(&mpi->base, failed_rank, what, seconds);
    else
        transport_timed_out(&mpi->base, failed_rank, what);
    break_transport(mpi, error_message());
}

/* Waits until nothing is left that the rank waits for.  The lock is held. */
static int wait_all(MpiTransport *mpi) {
    const PendingTransfer *waited;
    Waiting wait = waiting_start();
    double judge_s = mpi->base.timeout_s;
    for (int times = 0; progress(mpi, &waited) == 0; times++) {
        if (!waited) return 0;
        mpi->waits_for = waited->t.peer;
        if (waiting_turn(&wait) >= judge_s) {
            judge(mpi, waited, wait.seconds);
            judge_s = wait.seconds + mpi->base.timeout_s;
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

/* Runs in a thread of its own: while the rank computes it advances sends, and answers. */
static void *run_progress(void *argument) {
    static const double look_s = 0.02; /* for control messages, where nothing is sent */
    MpiTransport *mpi = argument;
    const PendingTransfer *waited;
    pthread_mutex_lock(&mpi->lock);
    for (int times = 0; !mpi->ends; times++) {
        if (!mpi->inside && progress(mpi, &waited)) receive_control(mpi);
        if (mpi->inside || mpi->broken || !mpi->pending.first) {
            condition_wait(&mpi->changed, &mpi->lock, clock_seconds() + look_s);
            times = 0;
        } else {
            pause_polling(mpi, times);
        }
    }
    pthread_mutex_unlock(&mpi->lock);
    return NULL;
}

static void mpi_abort(Transport *transport, const char *why) {
    MpiTransport *mpi = of(transport);
    AbortLine line;
    transport_abort_line(line, transport, why);
    pthread_mutex_lock(&mpi->lock);
    break_transport(mpi, line);
    pthread_mutex_unlock(&mpi->lock);
}

/* ---- who reports a failure ---- */

/* Receives control messages until this rank has heard as much.  Returns true if it has. */
static bool await(MpiTransport *mpi, Heard what, double seconds) {
    static const struct timespec moment = {0, 1000000};
    /* A signal may end the pause early: mpirun sends SIGTERM to the ranks that are left. */
    for (Waiting wait = waiting_start(); world.heard < what && waiting_turn(&wait) < seconds;
         nanosleep(&moment, NULL))
        receive_control(mpi);
    return world.heard >= what;
}

/* Of the ranks that answer, the lowest reports the failure, whoever found it and whichever rank it
 * names.  If it computes for long, another one does, and it finds that when it comes here.  The
 * others wait until it is reported, because the launcher ends all ranks when the first one leaves.
 * The lock is held. */
static void settle_report(MpiTransport *mpi) {
    const int rank = mpi->base.rank;
    /* Ranks that come here together do not claim it together. */
    const double claim_s = 15 + rank, report_s = 60;
    char error[ERROR_BYTES]; /* the failure's, which a message that cannot come must not replace */
    snprintf(error, sizeof error, "%s", error_message());
    for (int r = 0; r < rank; r++)
        control_send(&mpi->pending, r, (ControlMessage){.kind = CONTROL_QUERY});
    world.reports = !await(mpi, LOWER_RANK_RUNS, rank ? answer_s : 0.2) ||
                    !await(mpi, ANOTHER_REPORTS, claim_s);
    if (world.reports)
        control_tell_all(&mpi->base, (ControlMessage){.kind = CONTROL_REPORTS});
    else
        await(mpi, ANOTHER_HAS_REPORTED, report_s);
    world.settled = true;
    error_set("%s", error);
}

static bool mpi_reports(Transport *transport) {
    MpiTransport *mpi = of(transport);
    pthread_mutex_lock(&mpi->lock);
    if (world.broken && !world.settled) settle_report(mpi);
    const bool reports = !world.broken || world.reports;
    pthread_mutex_unlock(&mpi->lock);
    return reports;
}

/* ---- create and destroy ---- */

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
    const bool broken = mpi->broken;
    pthread_mutex_unlock(&mpi->lock);
    if (!broken) transport_barrier(transport);
    close_transport(mpi);
    world.open--;
}

/* Runs when the process exits.  If a rank is missing, MPI_Finalize would wait for it for ever; then
 * the rank that has reported the failure tells those that wait for this. */
static void leave(void) {
    Transport self = {.rank = 0};
    if (!world.broken && !world.open) MPI_Finalize();
    if (!world.reports || world.unsafe || mpi_check(MPI_Comm_rank(MPI_COMM_WORLD, &self.rank)) ||
        mpi_check(MPI_Comm_size(MPI_COMM_WORLD, &self.ranks)))
        return;
    control_tell_all(&self, (ControlMessage){.kind = CONTROL_REPORTED});
}

/* Fills in the rank, and the number of ranks.  Open MPI gives the processor away in every call that
 * finds nothing where there are more ranks than processors; on a busy machine it comes back late.
 * This transport itself sleeps between calls, and so has no use for that. */
static int join_world(Transport *transport) {
    int threads;
    if (!world.started) {
        setenv("OMPI_MCA_mpi_yield_when_idle", "0", 0);
        if (mpi_check(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &threads))) return -1;
        world.started = true;
        atexit(leave);
    }
    if (mpi_check(MPI_Query_thread(&threads))) return -1;
    if (threads < MPI_THREAD_SERIALIZED)
        return error_set("transport: this MPI was built without threads (MPI_THREAD_SERIALIZED)");
    /* Since MPI 4.0 errors of calls without a communicator are those of MPI_COMM_SELF. */
    return mpi_check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)) ||
                   mpi_check(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)) ||
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
    condition_init(&mpi->changed);
    pthread_mutex_lock(&mpi->lock); /* the thread does not call MPI before it has begun */
    if (pthread_create(&mpi->progress_thread, NULL, run_progress, mpi)) {
        free(mpi);
        return error_null("transport: no thread for MPI");
    }
    mpi->ends = join_world(&mpi->base) != 0;
    pthread_mutex_unlock(&mpi->lock);
    if (mpi->ends) {
        close_transport(mpi);
        return NULL;
    }
    world.open++;
    return &mpi->base;
}
