/* A tiny training (tests/ref/tiny.h) over a pipeline of threads, or replicas of one, instead of one
 * stage. */
#ifndef TESTS_DIST_PIPELINE_H
#define TESTS_DIST_PIPELINE_H

#include "../../dist/engine_rank.h"
#include "../ref/tiny.h"

enum { PIPELINE_MOST = 8 }; /* ranks of all replicas */

typedef struct {
    PlacementKind placement;
    int ranks, submodels;                /* of the placement; those that train are the recipe's */
    PipelineSettings settings;           /* the cache's are the recipe's */
    int replicas;                        /* 1 */
    void (*message_free)(void *message); /* of the stages that the recipe creates, or NULL */
} PipelineRecipe;

/* What a rank has sent to others of its pipeline. */
typedef struct {
    int values, gradients;
} Traffic;

typedef struct {
    Tiny tiny; /* its engine is the pipeline, its stage is gone */
    Placement placement;
    PipelineRecipe how;
    Stage *(*create)(const Model *model, StageSettings settings);
    StageSettings settings;
    Stage *stage[PIPELINE_MOST]; /* of each rank, owned by the engine; look at it between calls,
                                    after one of engine->is->memory */
    Traffic sent[PIPELINE_MOST];
    Transport *transport[PIPELINE_MOST];
} Pipeline;

/* Ends the program when something fails; a NULL engine when the engine refused. */
void pipeline_open(Pipeline *pipeline, const Recipe *recipe, const PipelineRecipe *how);
void pipeline_close(Pipeline *pipeline);

#endif
