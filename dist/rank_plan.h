/* What a rank of a pipeline will hold and do, worked out from sizes alone. */
#pragma once

#include "../ref/stage.h"
#include "placement.h"
#include "schedule.h"

typedef struct {
    int micro_batches; /* >= 1: the parts that a batch, or a replica's share of it, is cut into */
    ScheduleKind kind;
    size_t cache_bytes; /* the prefix cache, as in EngineSettings; 0: none */
    const char *cache_dir;
    int samples;    /* in the data set that is cached */
    bool augmented; /* the data set is augmented, which excludes a cache */
    /* Pre-inference: the first infer_ranks of a pipeline infer the frozen prefix on stages of their
     * own, which infer_stage creates as stage_ref_create does.  With 0 all ranks infer it together,
     * each the blocks that it holds. */
    int infer_ranks;
    Stage *(*infer_stage)(const Model *model, StageSettings settings);
} PipelineSettings;

/* The blocks that a rank holds, and how many micro-batches of each are in flight.  The settings of
 * the rank's stage refer to these arrays, and its engine keeps in_flight up to date. */
typedef struct {
    bool *local;    /* [blocks] */
    int *in_flight; /* [blocks] */
} RankBlocks;
/* Makes the blocks of a rank, for rank_blocks_free to free; one micro-batch of each is in flight.
 * -1 and an error when memory runs out. */
int rank_blocks_create(RankBlocks *blocks, const Placement *placement, const Model *model,
                       int rank);
void rank_blocks_free(RankBlocks *blocks);

/* Makes the blocks and changes the settings of a rank into those of a stage that holds the blocks
 * below `lowest` alone, and only infers.  -1 and an error when memory runs out. */
int rank_prefix_create(RankBlocks *blocks, StageSettings *settings, const Model *model, int lowest);

/* Overwrites blocks->in_flight for the time while `active` trains.  -1 and an error when memory
 * runs out. */
int rank_blocks_set_in_flight(RankBlocks *blocks, const Placement *placement, const Model *model,
                              PipelineSettings settings, const bool *active);

/* Overwrites blocks->in_flight, of `count` blocks, under a plan. */
void rank_in_flight(RankBlocks *blocks, const Placement *placement, int count,
                    const SchedulePlan *plan);

/* Returns how many messages that pass between chunk `low` and the next one a rank can have at once;
 * 0 where both are others'.  Nothing makes a rank wait that sends the outputs of a frozen chunk, so
 * all of them may be on their way. */
int rank_messages(const Placement *placement, const SchedulePlan *plan, int low, int rank);

/* Returns the bytes of these messages between all chunks, in the steps of a plan or in an
 * evaluation, whichever has more.  `settings` are those of the rank's stage. */
size_t rank_message_bytes(const Placement *placement, const SchedulePlan *plan, const Model *model,
                          const StageSettings *settings, int rank);

/* Returns the plan of a training step, or with active NULL of an evaluation.  It refers to
 * cost[chunks], which this overwrites; the unit of cost is operations, since only the order of
 * tasks depends on it. */
SchedulePlan rank_schedule_plan(ChunkCost *cost, const Placement *placement, const Model *model,
                                PipelineSettings settings, const bool *active);
