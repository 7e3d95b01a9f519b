/* What a rank of a pipeline is going to do and to hold, from sizes alone. */
#ifndef DIST_RANK_PLAN_H
#define DIST_RANK_PLAN_H

#include "../ref/stage.h"
#include "placement.h"
#include "schedule.h"

typedef struct {
    int micro_batches; /* that a batch (a replica's share of it) is cut into */
    ScheduleKind kind;
    int slack;
    /* Prefix cache, as in EngineSettings; 0 bytes: none. */
    size_t cache_bytes;
    const char *cache_dir;
    int samples;    /* of the data set it is for */
    bool augmented; /* which a cache refuses */
} PipelineSettings;

/* What the stage of a rank finds in its settings' local and in_flight: which blocks it holds,
 * and how many micro-batches of each are in flight, which the engine keeps up to date. */
typedef struct {
    bool *local;    /* [blocks] */
    int *in_flight; /* [blocks] */
} RankBlocks;
int rank_blocks_create(RankBlocks *blocks, const Placement *placement, const Model *model,
                       int rank);
void rank_blocks_free(RankBlocks *blocks);

/* Fills blocks->in_flight for the time in which `active` trains.  -1 and an error when memory runs
 * out.
 */
int rank_blocks_set_in_flight(RankBlocks *blocks, const Placement *placement, const Model *model,
                              PipelineSettings settings, const bool *active);

/* Overwrites in_flight[blocks] for the rank that holds local[blocks], under any plan. */
void rank_in_flight(int *in_flight, const bool *local, const Placement *placement, int blocks,
                    const SchedulePlan *plan);

/* Overwrites cost[chunks], the work of each chunk in operations (any unit will do for the order of
 * tasks), and trains[chunks]; returns the plan of a step, or with active NULL of an evaluation. */
SchedulePlan rank_schedule_plan(ChunkCost *cost, bool *trains, const Placement *placement,
                                const Model *model, PipelineSettings settings, const bool *active);

#endif
