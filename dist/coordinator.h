/* One training loop for all ranks.  It runs on rank 0 with the coordinator as its engine, which
 * sends every call to the other ranks, the workers, where it is made on their engines.  So the
 * loop, data, checkpoints and whatever else uses an engine need to know nothing of ranks. */
#pragma once

#include "../ref/engine.h"
#include "transport.h"

/* Creates the coordinator on rank 0, when all workers are ready.  `own` is an engine_rank.  Its
 * free tells the workers to end, frees `own` and `world`, and last calls `after` unless that is
 * NULL.  `own` is NULL if this rank could not create its engine; the others then fail with its
 * error.  NULL and the error of a rank that failed; `own` and `world` are then freed and `after`
 * was called.  The error becomes empty, also in free, if another rank has reported it. */
Engine *coordinator_create(Engine *own, Transport *world, void (*after)(void *context),
                           void *context);

/* Returns the memory of each rank [ranks] at the last call of memory. */
const MemCount *coordinator_counts(Engine *coordinator);

/* Runs a worker on each other rank: makes the coordinator's calls on `own` until the coordinator is
 * freed.  `own` is NULL if this rank could not create its engine; the others then fail with its
 * error.  Frees engine and transport.  -1 and an error if the transport broke, or a call failed on
 * this rank alone; the error is empty if another rank reports it. */
int worker_run(Engine *own, Transport *world);
