#include "pending.h"

#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"

/* MPI counts with an int, so the bytes of a message are grouped. */
enum { GROUP_BYTES = 1 << 20 };

int mpi_check(int code) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code == MPI_SUCCESS) return 0;
    MPI_Error_string(code, text, &length);
    return error_set("transport: MPI: %.300s", text);
}

/* Creates the type of a message: groups of bytes, and then the bytes that are left. */
static int message_type(MPI_Datatype *type, size_t bytes) {
    MPI_Datatype types[2] = {MPI_DATATYPE_NULL, MPI_BYTE};
    int counts[2] = {(int)(bytes / GROUP_BYTES), (int)(bytes % GROUP_BYTES)};
    MPI_Aint offsets[2] = {0, (MPI_Aint)(bytes - bytes % GROUP_BYTES)};
    if (mpi_check(MPI_Type_contiguous(GROUP_BYTES, MPI_BYTE, &types[0]))) return -1;
    int failed = mpi_check(MPI_Type_create_struct(2, counts, offsets, types, type));
    MPI_Type_free(&types[0]);
    return failed || mpi_check(MPI_Type_commit(type)) ? -1 : 0;
}

static int start(PendingTransfer *m) {
    const Transfer *t = &m->t;
    MPI_Comm all = MPI_COMM_WORLD;
    MPI_Datatype type;
    if (message_type(&type, t->bytes)) return -1;
    int tag = (int)t->channel;
    int code = t->send ? MPI_Isend(t->data, 1, type, t->peer, tag, all, &m->request)
                       : MPI_Irecv(t->data, 1, type, t->peer, tag, all, &m->request);
    MPI_Type_free(&type); /* the transfer keeps it until it is done */
    return mpi_check(code);
}

int pending_add(PendingTransfers *pending, const Transfer *t, bool copied) {
    PendingTransfer *m = malloc(sizeof *m + (copied ? t->bytes : 0));
    if (!m) return error_set("transport: out of memory for a message of %zu bytes", t->bytes);
    *m = (PendingTransfer){.t = *t, .copied = copied, .request = MPI_REQUEST_NULL};
    if (copied) {
        m->t.data = m->copy;
        memcpy(m->copy, t->data, t->bytes);
    }
    if (start(m)) {
        free(m);
        return -1;
    }
    *pending->end = m;
    pending->end = &m->next;
    return 0;
}

static void pending_remove(PendingTransfers *pending, PendingTransfer **at) {
    PendingTransfer *m = *at;
    *at = m->next;
    if (!m->next) pending->end = at;
    free(m);
}

void pending_free(PendingTransfers *pending) {
    while (pending->first) pending_remove(pending, &pending->first);
}

int pending_test(const Transport *transport, PendingTransfer *m) {
    int over = 0, error;
    MPI_Status status;
    MPI_Count sent;
    int code = MPI_Test(&m->request, &over, &status);
    MPI_Error_class(code, &error);
    if (error == MPI_ERR_TRUNCATE) /* MPI does not say how much was sent */
        return transport_wrong_length(transport, m->t.peer, m->t.bytes + 1, m->t.bytes);
    if (mpi_check(code)) return -1;
    if (!over || m->t.send) return over;
    if (mpi_check(MPI_Get_elements_x(&status, MPI_BYTE, &sent))) return -1;
    if ((size_t)sent != m->t.bytes)
        return transport_wrong_length(transport, m->t.peer, (size_t)sent, m->t.bytes);
    return 1;
}

int pending_advance(const Transport *transport, PendingTransfers *pending,
                    const PendingTransfer **waited) {
    *waited = NULL;
    for (PendingTransfer **at = &pending->first; *at;) {
        PendingTransfer *m = *at;
        int done = pending_test(transport, m);
        if (done < 0) return -1;
        if (done) {
            pending_remove(pending, at);
            continue;
        }
        if (!*waited && !m->copied) *waited = m;
        at = &m->next;
    }
    return 0;
}
