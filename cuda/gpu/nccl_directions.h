/* The communicators of the NCCL transport, one for each direction between neighbours. */
#pragma once

#include "../../dist/transport.h"
#include "../message.h"
#include "nccl_library.h"

enum { SENDS = 2, DIRECTIONS = 4 };

/* A channel from or to a neighbour. */
typedef struct {
    bool send;
    int peer;
    Channel channel;
    ncclComm_t comm;
    Stream stream;
} Direction;

typedef struct {
    Transport base;
    Transport *control;
    Direction direction[DIRECTIONS]; /* the sends first */
    DeviceMessage **sent;            /* [sends], not yet taken by their receivers */
    int sends, capacity;
    bool broken; /* NCCL is not called any more */
    AbortLine why;
} NcclTransport;

/* A message and where it goes, or comes from. */
typedef struct {
    const Direction *direction;
    DeviceMessage *message;
} NcclMove;

/* Creates the communicators and connects them.  All ranks must call it together.  Returns -1, with
 * an error, when that fails. */
int directions_open(NcclTransport *transport);
/* Ends the communicators; both ranks of each must call it. */
void directions_close(NcclTransport *transport);
/* Ends NCCL's kernels, which would otherwise wait for ever.  The first `why` is kept. */
void directions_break(NcclTransport *transport, const char *why);

/* Starts all moves in one group, so that none waits for another.  Returns -1 and an error. */
int directions_start(const NcclTransport *transport, const NcclMove *move, int moves);
/* Waits until NCCL has done on the host what it was asked for and, if there is a message, until it
 * is on the device.  Returns -1 when that fails or takes too long; the error names the other rank
 * and says `what` is missing. */
int direction_settle(const NcclTransport *transport, const Direction *direction,
                     const DeviceMessage *message, const char *what);
