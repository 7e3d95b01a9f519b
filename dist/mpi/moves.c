#include "moves.h"

#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"

/* Far below the 2 GiB that one MPI call can send, so that tests have messages of several pieces. */
enum { PIECE_BYTES = 1 << 24 };

int mpi_check(int code) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code == MPI_SUCCESS) return 0;
    MPI_Error_string(code, text, &length);
    return error_set("transport: MPI: %.300s", text);
}

int moves_add(MpiMoves *moves, const Transfer *t, bool copied, bool with_length) {
    MpiMove *m = malloc(sizeof *m + (copied ? t->bytes : 0));
    if (!m) return error_set("transport: out of memory for a message of %zu bytes", t->bytes);
    *m = (MpiMove){.t = *t,
                   .copied = copied,
                   .length = t->bytes,
                   .started = !with_length,
                   .request = MPI_REQUEST_NULL};
    if (copied) {
        m->t.data = m->copy;
        memcpy(m->copy, t->data, t->bytes);
    }
    *moves->end = m;
    moves->end = &m->next;
    return 0;
}

static void remove_move(MpiMoves *moves, MpiMove **at) {
    MpiMove *m = *at;
    *at = m->next;
    if (!m->next) moves->end = at;
    free(m);
}

void moves_free(MpiMoves *moves) {
    while (moves->first) remove_move(moves, &moves->first);
}

/* Starts to send or receive the length, or the next piece. */
static int start_next(MpiMove *m) {
    size_t left = m->t.bytes - m->moved;
    size_t size = m->started ? (left < PIECE_BYTES ? left : PIECE_BYTES) : sizeof m->length;
    void *data = m->started ? (char *)m->t.data + m->moved : (void *)&m->length;
    if (m->started) m->moved += size;
    m->started = true;
    return mpi_check(m->t.send ? MPI_Isend(data, (int)size, MPI_BYTE, m->t.peer, (int)m->t.channel,
                                           MPI_COMM_WORLD, &m->request)
                               : MPI_Irecv(data, (int)size, MPI_BYTE, m->t.peer, (int)m->t.channel,
                                           MPI_COMM_WORLD, &m->request));
}

int move_advance(const Transport *transport, MpiMove *m) {
    for (;;) {
        int over = 0;
        if (mpi_check(MPI_Test(&m->request, &over, MPI_STATUS_IGNORE))) return -1;
        if (!over) return 0;
        if (m->length != m->t.bytes)
            return transport_wrong_length(transport, m->t.peer, (size_t)m->length, m->t.bytes);
        if (m->started && m->moved == m->t.bytes) return 1;
        if (start_next(m)) return -1;
    }
}

/* Returns true if an earlier transfer of the list is on the same channel. */
static bool is_behind(const MpiMoves *moves, const MpiMove *m) {
    for (const MpiMove *other = moves->first; other != m; other = other->next)
        if (other->t.send == m->t.send && other->t.peer == m->t.peer &&
            other->t.channel == m->t.channel)
            return true;
    return false;
}

int moves_advance(const Transport *transport, MpiMoves *moves, const MpiMove **waited) {
    *waited = NULL;
    for (MpiMove **at = &moves->first; *at;) {
        MpiMove *m = *at;
        int done = is_behind(moves, m) ? 0 : move_advance(transport, m);
        if (done < 0) return -1;
        if (done) {
            remove_move(moves, at);
            continue;
        }
        if (!*waited && !m->copied) *waited = m;
        at = &m->next;
    }
    return 0;
}
