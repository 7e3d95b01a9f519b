/* The transfers of an MPI transport that are in progress.  A message is sent as its length and then
 * its bytes in pieces.  All transfers are in one list, in which those of one channel keep their
 * order. */
#ifndef DIST_MPI_MOVES_H
#define DIST_MPI_MOVES_H

#include <mpi.h>

#include "../transport.h"

typedef struct MpiMove {
    struct MpiMove *next;
    Transfer t;
    bool copied;         /* t.data is `copy`, and the rank does not wait for the transfer */
    uint64_t length;     /* sent first */
    bool started;        /* the transfer of the length has been started */
    size_t moved;        /* bytes whose transfer has been started */
    MPI_Request request; /* the transfer in progress */
    max_align_t copy[];
} MpiMove;

typedef struct {
    MpiMove *first, **end; /* an empty list has end = &first */
} MpiMoves;

/* Appends a transfer.  With `copied` the data of a send are copied first.  Without `with_length`,
 * for messages of one length, only the bytes are sent.  -1 and an error when memory runs out. */
int moves_add(MpiMoves *moves, const Transfer *t, bool copied, bool with_length);

/* Advances one transfer as far as is possible without waiting.  Returns 1 if it is done, 0 if not
 * yet, or -1 and an error. */
int move_advance(const Transport *transport, MpiMove *move);

/* Advances every transfer that is the first of its channel, and removes those that are done.  Sets
 * *waited to the first one that the rank waits for, or NULL.  Returns 0, or -1 and an error. */
int moves_advance(const Transport *transport, MpiMoves *moves, const MpiMove **waited);

void moves_free(MpiMoves *moves);

/* Returns 0 for MPI_SUCCESS, or -1 and MPI's error. */
int mpi_check(int code);

#endif
