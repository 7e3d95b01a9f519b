/* One training loop for all ranks: it runs on rank 0, whose engine here tells the others of every
 * call, and they carry it out on theirs.  So the loop, the data, checkpoints and whatever a program
 * does with an engine are written once, and know nothing of ranks. */
#ifndef DIST_COORDINATOR_H
#define DIST_COORDINATOR_H

#include "../ref/engine.h"
#include "transport.h"

/* What a coordinator adds to an engine. */
typedef struct {
    Engine base;
    Engine *rank;     /* rank 0's own */
    Transport *world; /* of all ranks, this is its rank 0 */
    void (*after)(void *context);
    void *context;
    MemCount memory, *each; /* of all ranks together; [ranks] of each, at the last call of memory */
} Coordinator;

/* On rank 0.  Waits until all workers are ready; takes over the engine of the rank and the
 * transport, and frees them with itself, after the others have ended; `after`, unless NULL, is
 * called last of all. Fills *coordinator, which must stay where it is.  On failure -1 and the error
 * of a rank that could not make its engine (rank NULL: this one, whose error the others then get),
 * and nothing is left.
 */
int coordinator_open(Coordinator *coordinator, const Model *model, Engine *rank, Transport *world,
                     void (*after)(void *context), void *context);

/* What each rank [ranks] counted at the last call of memory. */
const MemCount *coordinator_counts(Engine *coordinator);

/* On the others: carries out calls on `rank` (NULL: it could not be made, all others get the
 * error) until the coordinator frees its engine.  Takes over engine and transport.  -1 and an error
 * when the transport broke or a call failed here alone. */
int worker_run(Engine *rank, Transport *world);

/* ---- between the two ---- */

typedef enum {
    CALL_ACTIVATE, /* then active[blocks] */
    CALL_STEP,     /* then the batch */
    CALL_EVALUATE, /* likewise */
    CALL_SIZE,     /* read without data */
    CALL_READ,     /* after a CALL_SIZE */
    CALL_WRITE,    /* then the numbers */
    CALL_SET_OPTIMIZER_STEP,
    CALL_MEMORY,
    CALL_END
} CallKind;

typedef struct {
    CallKind kind;
    int samples;     /* STEP, EVALUATE */
    double lr;       /* STEP */
    TensorRole role; /* SIZE, READ, WRITE */
    int number;      /* of the tensor; SET_OPTIMIZER_STEP: the block */
    size_t count;    /* READ: numbers in it */
    uint64_t t;
} RemoteCall;

/* Numbers in a tensor that can be written. */
size_t call_numbers(const Model *model, TensorRole role, int number);

/* Rank 0's batch becomes that of all; it has room for n samples everywhere. */
int call_share_batch(Transport *world, const Model *model, Batch *batch, int n);

#endif
