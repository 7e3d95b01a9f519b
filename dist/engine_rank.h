/* The engine of one rank of a pipeline.  All ranks call activate, step, evaluate, read and write of
 * their engines with the same arguments, in the same order (SPMD), and get the same results, except
 * that a tensor is read for rank 0 alone: of the others, the rank that has it also overwrites its
 * `data`, and the rest return 0. */
#pragma once

#include "../ref/engine.h"
#include "rank_plan.h"
#include "transport.h"

/* Creates the engine.  `transport` joins the ranks of this pipeline.  `replicas` joins this rank
 * with the same rank of the pipeline's replicas, which divide each batch; it is NULL if there is
 * only one pipeline.  stage->settings.local and .in_flight must point to blocks.local and
 * blocks.in_flight.  The engine frees the stage, the transports and the blocks, also on failure.
 * Model, placement and settings.cache_dir must outlive it.  NULL and an error when memory runs out,
 * the cache would not be exact, or correct_factor > 0. */
Engine *engine_rank_create(Stage *stage, Transport *transport, Transport *replicas,
                           const Placement *placement, RankBlocks blocks,
                           PipelineSettings settings);

/* Breaks the transports of such an engine.  Where a rank is lost this comes before its free, as the
 * stage's memory is freed only when the device has ended what a transport has begun there. */
void engine_rank_break(Engine *engine, const char *why);
