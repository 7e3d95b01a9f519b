/* The transfers of an MPI transport that are in progress.  MPI keeps the order of messages of one
 * channel, whose number is their tag. */
#ifndef DIST_MPI_MOVES_H
#define DIST_MPI_MOVES_H

#include <mpi.h>

#include "../transport.h"

typedef struct MpiMove {
    struct MpiMove *next;
    Transfer t;
    bool copied; /* t.data is `copy`, and the rank does not wait for the transfer */
    MPI_Request request;
    max_align_t copy[];
} MpiMove;

typedef struct {
    MpiMove *first, **end; /* an empty list has end = &first */
} MpiMoves;

/* Starts a transfer and adds it to the list.  With `copied` the data of a send are copied first. -1
 * and an error. */
int moves_add(MpiMoves *moves, const Transfer *t, bool copied);

/* Returns 1 if the transfer is done, 0 if not yet, or -1 and an error. */
int move_test(const Transport *transport, MpiMove *move);

/* Removes the transfers that are done.  Sets *waited to the first one that the rank waits for, or
 * NULL.  Returns 0, or -1 and an error. */
int moves_advance(const Transport *transport, MpiMoves *moves, const MpiMove **waited);

void moves_free(MpiMoves *moves);

/* Returns 0 for MPI_SUCCESS, or -1 and MPI's error. */
int mpi_check(int code);

#endif
