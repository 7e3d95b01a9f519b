/* The transport between processes, by MPI.  This is a library of its own, which the program loads
 * when it is asked for (experiments/train/modules.h) and otherwise does without MPI.
 *
 * Schedules send before the receiver is ready, so values and gradients are copied, and the sender
 * does not wait.  Whoever holds the lock advances the transfers in progress (moves.h): the rank
 * while it waits, or a thread of its own while the rank computes. */
#include "transport_mpi.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../ref/error.h"
#include "../deadline.h"
#include "moves.h"

/* Messages between the transports themselves, with a tag of their own. */
typedef enum { NOTE_GIVES_UP, NOTE_ASKS, NOTE_ANSWERS } NoteKind;
typedef struct {
    NoteKind kind;
    int waits_for; /* NOTE_ANSWERS: a rank or NOBODY */
    AbortLine why; /* NOTE_GIVES_UP */
} Note;
enum { TAG_NOTE = CHANNELS, NOBODY = -1, NOT_ANSWERED = -2 };

typedef struct {
    Transport base;
    pthread_mutex_t lock; /* protects all that follows, and calls of MPI */
    pthread_cond_t changed;
    MpiMoves moves;
    bool inside; /* the rank is in a sendrecv and advances the transfers itself */
    int waits_for, answer;
    bool broken; /* MPI is no longer called */
    AbortLine why;
    pthread_t pusher;
    bool ends;
} MpiTransport;

/* The state of MPI in this process. */
static struct {
    bool started, broken;
    int open; /* transports */
} world;

static MpiTransport *of(Transport *transport) { return (MpiTransport *)(void *)transport; }

/* ---- notes ---- */

static int send_note(MpiTransport *l, int to, Note note) {
    Transfer t = transport_send(to, (Channel)TAG_NOTE, &note, sizeof note);
    return moves_add(&l->moves, &t, true);
}

/* Marks the transport as broken and tells the other ranks by notes.  Waits a moment until the notes
 * are sent, because the process may end next. */
static void break_transport(MpiTransport *l, const char *why) {
    if (l->broken) return;
    l->broken = world.broken = true;
    snprintf(l->why, sizeof l->why, "%s", why);
    Note note = {.kind = NOTE_GIVES_UP};
    memcpy(note.why, l->why, sizeof note.why);
    MpiMove **own = l->moves.end;
    for (int r = 0; r < l->base.ranks; r++)
        if (r != l->base.rank) send_note(l, r, note); /* one that cannot be sent is left out */
    bool left = true;
    for (Deadline until = deadline_in(1); left && !deadline_over(until);) {
        left = false;
        for (MpiMove *m = *own; m; m = m->next)
            if (move_test(&l->base, m) == 0) left = true;
    }
}

static int take_notes(MpiTransport *l) {
    for (;;) {
        int there = 0;
        MPI_Status from;
        Note note;
        if (mpi_check(MPI_Iprobe(MPI_ANY_SOURCE, TAG_NOTE, MPI_COMM_WORLD, &there, &from)))
            return -1;
        if (!there) return 0;
        if (mpi_check(MPI_Recv(&note, sizeof note, MPI_BYTE, from.MPI_SOURCE, TAG_NOTE,
                               MPI_COMM_WORLD, MPI_STATUS_IGNORE)))
            return -1;
        if (note.kind == NOTE_GIVES_UP) {
            l->broken = world.broken = true;
            memcpy(l->why, note.why, sizeof l->why);
            return -1;
        }
        Note answer = {.kind = NOTE_ANSWERS, .waits_for = l->waits_for};
        if (note.kind == NOTE_ANSWERS) l->answer = note.waits_for;
        if (note.kind == NOTE_ASKS && send_note(l, from.MPI_SOURCE, answer)) return -1;
    }
}

/* Takes notes and advances all transfers.  The lock is held.  Returns -1 if the transport is
 * broken; l->why says why. */
static int progress(MpiTransport *l, const MpiMove **waited) {
    if (l->broken) return -1;
    if (take_notes(l) == 0 && moves_advance(&l->base, &l->moves, waited) == 0) return 0;
    break_transport(l, error_message());
    return -1;
}

/* ---- waiting ---- */

/* Releases the lock for a moment, and if the wait takes longer also the processor. */
static void pause_polling(MpiTransport *l, int times) {
    struct timespec t = {0, times < 200 ? 50000 : 200000};
    pthread_mutex_unlock(&l->lock);
    if (times > 50) nanosleep(&t, NULL);
    pthread_mutex_lock(&l->lock);
}

/* Asks a rank whom it waits for.  A rank answers while it waits itself. */
static int mpi_waits_for(Transport *transport, int rank) {
    MpiTransport *l = of(transport);
    const MpiMove *waited;
    Deadline until = deadline_in(transport->timeout_s < 2 ? transport->timeout_s / 2 : 1);
    l->answer = NOT_ANSWERED;
    if (send_note(l, rank, (Note){.kind = NOTE_ASKS})) return NOBODY;
    for (int times = 0; l->answer == NOT_ANSWERED && !deadline_over(until); times++) {
        if (progress(l, &waited)) return NOBODY;
        pause_polling(l, times);
    }
    return l->answer;
}

/* Waits until nothing is left that the rank waits for.  The lock is held. */
static int wait_all(MpiTransport *l) {
    const MpiMove *waited;
    Deadline until = deadline_in(l->base.timeout_s);
    for (int times = 0; progress(l, &waited) == 0; times++) {
        if (!waited) return 0;
        int missing = l->waits_for = waited->t.peer;
        const char *what = waited->t.send ? "to take a message" : "to send a message";
        if (deadline_over(until)) {
            int failed_rank = transport_failed_rank(&l->base, missing, mpi_waits_for);
            transport_timed_out(&l->base, failed_rank, what);
            break_transport(l, error_message()); /* unless another rank has done so meanwhile */
        }
        pause_polling(l, times);
    }
    break_transport(l, error_message());
    return error_set("%s", l->why);
}

static int mpi_sendrecv(Transport *transport, Transfer *transfers, int count) {
    MpiTransport *l = of(transport);
    int failed = 0;
    pthread_mutex_lock(&l->lock);
    l->inside = true;
    for (int i = 0; i < count && !failed && !l->broken; i++)
        failed = moves_add(&l->moves, &transfers[i],
                           transfers[i].send && transfers[i].channel != CHANNEL_COLLECTIVE);
    if (failed) break_transport(l, error_message());
    failed = wait_all(l);
    l->inside = false;
    l->waits_for = NOBODY;
    if (l->moves.first) pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->lock);
    return failed;
}

/* Runs in a thread of its own and advances sends while the rank computes. */
static void *push(void *argument) {
    MpiTransport *l = argument;
    const MpiMove *waited;
    pthread_mutex_lock(&l->lock);
    for (int times = 0; !l->ends; times++) {
        if (l->inside || !l->moves.first || progress(l, &waited)) {
            pthread_cond_wait(&l->changed, &l->lock);
            times = 0;
        } else {
            pause_polling(l, times);
        }
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- create and destroy ---- */

static void mpi_abort(Transport *transport, const char *why) {
    MpiTransport *l = of(transport);
    AbortLine line;
    transport_abort_line(line, transport, why);
    pthread_mutex_lock(&l->lock);
    break_transport(l, line);
    pthread_mutex_unlock(&l->lock);
}

/* Waits until all that was sent has been received, because MPI_Finalize demands it. */
static void mpi_free(Transport *transport) {
    MpiTransport *l = of(transport);
    pthread_mutex_lock(&l->lock);
    for (MpiMove *m = l->moves.first; m; m = m->next) m->copied = false;
    pthread_mutex_unlock(&l->lock);
    if (!l->broken) transport_barrier(transport);
    pthread_mutex_lock(&l->lock);
    l->ends = true;
    pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->pusher, NULL);
    moves_free(&l->moves);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    free(l);
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
    MpiTransport *l = calloc(1, sizeof *l);
    if (!l) {
        error_set("transport: out of memory");
        return NULL;
    }
    l->base = (Transport){.is = &class, .timeout_s = timeout_s};
    l->moves.end = &l->moves.first;
    l->waits_for = NOBODY;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    int failed = mpi_check(MPI_Comm_rank(MPI_COMM_WORLD, &l->base.rank)) ||
                 mpi_check(MPI_Comm_size(MPI_COMM_WORLD, &l->base.ranks));
    if (!failed && pthread_create(&l->pusher, NULL, push, l))
        failed = error_set("transport: no thread for MPI");
    if (!failed) {
        world.open++;
        return &l->base;
    }
    free(l);
    return NULL;
}
