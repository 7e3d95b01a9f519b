/* Inside of a rank's engine, shared by its files: engine_rank.c has its life and its updates,
 * rank_tasks.c carries out schedules. */
#ifndef DIST_RANK_INSIDE_H
#define DIST_RANK_INSIDE_H

#include "engine_rank.h"

typedef struct {
    Engine base;
    Stage *stage;
    Link *link, *copies;
    const Placement *placement;
    RankBlocks blocks;
    PipelineSettings settings;
    bool *active;    /* [blocks] */
    bool *trains;    /* [chunks] */
    ChunkCost *cost; /* [chunks] */
    Schedule training, evaluation;
    /* Values and gradients on their way to a chunk, [chunks][micro_batches]: received or made here,
     * and not yet used or sent.  NULL: none. */
    real **value, **gradient;
    double *square; /* [ranks + 1][params] */
    /* The step that runs: */
    const Batch *batch; /* in parts */
    int part_size;      /* samples of each part, but for the last */
    Pass pass;
    double scale;
    Loss loss; /* so far; on the rank of the last chunk */
} RankEngine;

static inline int chunk_rank(const RankEngine *e, int chunk) {
    return e->placement->rank_of[chunk];
}
int chunk_first_block(const RankEngine *e, int chunk);
int chunk_end_block(const RankEngine *e, int chunk);

/* Carries out this rank's list for the batch of the step.  -1 and an error when a rank is missing
 * or memory runs out. */
int rank_run(RankEngine *engine, const Schedule *schedule);
/* Drops what a step that was given up has left on its way. */
void rank_drop(RankEngine *engine);

#endif
