/* The transfers of an MPI transport that are in progress.  MPI keeps the order of messages of one
 * channel, whose number is their tag. */
#pragma once

#include <mpi.h>

#include "../transport.h"

typedef struct PendingTransfer {
    struct PendingTransfer *next;
    Transfer t;
    bool copied; /* t.data is `copy`, and the rank does not wait for the transfer */
    MPI_Request request;
    max_align_t copy[];
} PendingTransfer;

typedef struct {
    PendingTransfer *first, **end; /* an empty list has end = &first */
} PendingTransfers;

/* Starts a transfer and adds it to the list.  With `copied` the data of a send are copied first. -1
 * and an error. */
int pending_add(PendingTransfers *pending, const Transfer *t, bool copied);

/* Returns 1 if the transfer is done, 0 if not yet, or -1 and an error. */
int pending_test(const Transport *transport, PendingTransfer *transfer);

/* Removes the transfers that are done.  Sets *waited to the first one that the rank waits for, or
 * NULL.  Returns 0, or -1 and an error. */
int pending_advance(const Transport *transport, PendingTransfers *pending,
                    const PendingTransfer **waited);

void pending_free(PendingTransfers *pending);

/* Returns 0 for MPI_SUCCESS, or -1 and MPI's error. */
int mpi_check(int code);
