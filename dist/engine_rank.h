/* The engine of one rank of a pipeline.  Every rank runs the same training loop with an engine of
 * its own (SPMD): activate, step, evaluate, read and write are called by all ranks with the same
 * arguments, in the same order, and give every rank the same answer. */
#ifndef DIST_ENGINE_RANK_H
#define DIST_ENGINE_RANK_H

#include "../ref/engine.h"
#include "rank_plan.h"
#include "transport.h"

/* `transport` joins the ranks of this pipeline; `replicas`, NULL where there is but one pipeline,
 * joins the same place of all its replicas, which share out each batch.  Takes over the stage,
 * whose settings name blocks.local and blocks.in_flight, the transports, and the blocks: frees them
 * with itself, or at once when it fails.  The placement must outlive it.  NULL and an error when
 * memory runs out. */
Engine *engine_rank_create(Stage *stage, Transport *transport, Transport *replicas,
                           const Placement *placement, RankBlocks blocks,
                           PipelineSettings settings);

/* Messages that a channel must hold, whatever submodel is active: a sender that waits when there
 * are as many does not deadlock.  No less than schedule_bound of all chunks together. */
int engine_rank_capacity(const Placement *placement, PipelineSettings settings);

#endif
