/* The engine of one rank of a pipeline.  Every rank runs the same training loop with an engine of
 * its own (SPMD): activate, step, evaluate, read and write are called by all ranks with the same
 * arguments, in the same order, and give every rank the same answer. */
#ifndef DIST_ENGINE_RANK_H
#define DIST_ENGINE_RANK_H

#include "../ref/engine.h"
#include "link.h"
#include "placement.h"
#include "schedule.h"

typedef struct {
    int micro_batches;
    ScheduleKind kind;
    int slack;
} PipelineSettings;

/* What the stage of a rank is told, through its settings' here and slots: which blocks it holds,
 * and how many micro-batches of each are in flight, which the engine keeps up to date. */
typedef struct {
    bool *here; /* [blocks] */
    int *slots; /* [blocks] */
} RankBlocks;
int rank_blocks_create(RankBlocks *blocks, const Placement *placement, const Model *model,
                       int rank);
void rank_blocks_free(RankBlocks *blocks);

/* Takes over the stage, whose settings name blocks.here and blocks.slots, the link, and the blocks:
 * frees them with itself, or at once when it fails.  The placement must outlive it.  NULL and an
 * error when memory runs out. */
Engine *engine_rank_create(Stage *stage, Link *link, const Placement *placement, RankBlocks blocks,
                           PipelineSettings settings);

/* The most messages a channel needs to hold, whatever submodel is active. */
int engine_rank_capacity(const Placement *placement, PipelineSettings settings);

#endif
