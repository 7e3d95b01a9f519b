/* Lines: what the NCCL transport (transport_nccl.c) sends and receives on.
 *
 * Each channel from one rank to another is a communicator of those two, and a stream, made when it
 * is first used: on a common one, a send that waits for its receiver would keep what comes behind
 * it from moving, and ranks in a ring would wait for each other. */
#ifndef CUDA_GPU_NCCL_CHANNELS_H
#define CUDA_GPU_NCCL_CHANNELS_H

#include <pthread.h>
#include <stdatomic.h>

#include "../../dist/transport.h"
#include "../message.h"
#include "nccl_library.h"

typedef struct NcclTransport NcclTransport;

/* A channel from one rank to another; to itself, too. */
typedef struct Line {
    struct Line *next;
    NcclTransport *transport;
    int from, to;
    Channel channel;
    ncclComm_t comm;
    Stream stream;
    bool used; /* something was sent */
    bool open; /* the rank's thread may use it; until then sends are kept for the opener */
    bool has_opener;
    pthread_t opener;
} Line;

/* A message on its line. */
typedef struct {
    Line *line;
    DeviceMessage *message;
    bool send, started;
} Parcel;

struct NcclTransport {
    Transport base;
    Transport *control;
    const NcclLibrary *nccl;
    Line *first;
    pthread_mutex_t lock; /* of lines' used and open, and of what was sent */
    Parcel *sent;         /* [sends], not yet taken by their receivers */
    int sends, room;
    atomic_bool broken; /* nothing works any more; after why was written */
    char why[400];
    bool shut;
};

/* NULL: none yet. */
Line *line_find(const NcclTransport *transport, const Transfer *t);
/* Begins to open one, which takes until the other rank does too; a send does not wait for that: a
 * thread, the opener, sends on what was sent meanwhile.  NULL and an error. */
Line *line_add(NcclTransport *transport, const Transfer *t, const ncclUniqueId *id);
/* Waits for that; where the line has no opener. */
int line_finish_opening(Line *line);

/* Starts all in one group, so that none waits for another.  Their lines are open. */
int lines_start(Parcel *const *parcel, int parcels);
/* Waits until NCCL is done on the host and, if there is a message, until it is on the device.  -1
 * and an error that names the other rank and says `what` is missing. */
int line_settle(const Line *line, const DeviceMessage *message, const char *what);

void lines_mark_broken(NcclTransport *transport, const char *why);
/* Ends NCCL's kernels, which else wait for ever. */
void lines_shut(NcclTransport *transport);
/* Frees all; both ranks of a line end it together. */
void lines_close(NcclTransport *transport);

#endif
