/* One training loop for all ranks.  It runs on rank 0 with the coordinator as its engine, which
 * sends every call to the other ranks, the workers, where it is made on their engines.  So the
 * loop, data, checkpoints and whatever else uses an engine need to know nothing of ranks. */
#ifndef DIST_COORDINATOR_H
#define DIST_COORDINATOR_H

#include "../ref/engine.h"
#include "transport.h"

typedef struct {
    Engine base;
    Engine *rank;     /* the engine of rank 0 */
    Transport *world; /* joins all ranks */
    void (*after)(void *context);
    void *context;
    MemCount memory; /* of all ranks together, at the last call of memory */
    MemCount *each;  /* [ranks]: of each */
} Coordinator;

/* Opens the coordinator on rank 0, when all workers are ready.  *coordinator must not be moved.
 * Its free tells the workers to end, frees `rank` and `world`, and last calls `after` unless that
 * is NULL. `rank` is NULL if this rank could not create its engine; the others then fail with its
 * error.  -1 and the error of a rank that failed; `rank` and `world` are then freed and `after` was
 * called. */
int coordinator_open(Coordinator *coordinator, const Model *model, Engine *rank, Transport *world,
                     void (*after)(void *context), void *context);

/* Returns the memory of each rank [ranks] at the last call of memory. */
const MemCount *coordinator_counts(Engine *coordinator);

/* Runs a worker on each other rank: makes the coordinator's calls on `rank` until the coordinator
 * is freed.  `rank` is NULL if this rank could not create its engine; the others then fail with its
 * error.  Frees engine and transport.  -1 and an error if the transport broke, or a call failed on
 * this rank alone. */
int worker_run(Engine *rank, Transport *world);

/* ---- what the coordinator sends to the workers ---- */

typedef enum {
    CALL_ACTIVATE, /* active[blocks] follows */
    CALL_STEP,     /* the batch follows */
    CALL_EVALUATE, /* the batch follows */
    CALL_SIZE,     /* read with data NULL */
    CALL_READ,     /* comes after a CALL_SIZE */
    CALL_WRITE,    /* the numbers follow */
    CALL_SET_OPTIMIZER_STEP,
    CALL_MEMORY,
    CALL_END
} CallKind;

typedef struct {
    CallKind kind;
    int samples;     /* STEP, EVALUATE */
    double lr;       /* STEP */
    TensorRole role; /* SIZE, READ, WRITE */
    int number;      /* of the tensor, or for SET_OPTIMIZER_STEP of the block */
    size_t count;    /* READ: numbers in the tensor */
    uint64_t t;      /* SET_OPTIMIZER_STEP */
} RemoteCall;

/* Returns the numbers in a tensor that can be written. */
size_t call_numbers(const Model *model, TensorRole role, int number);

/* Overwrites the batch on every rank with n samples of rank 0's; it must have room for them. */
int call_share_batch(Transport *world, const Model *model, Batch *batch, int n);

#endif
