/* A tiny training (tests/ref/tiny.h) over a pipeline of threads instead of one stage. */
#ifndef TESTS_DIST_PIPELINE_H
#define TESTS_DIST_PIPELINE_H

#include "../../dist/engine_rank.h"
#include "../ref/tiny.h"

typedef struct {
    PlacementKind placement;
    int ranks, submodels; /* of the placement; those that train are the recipe's */
    PipelineSettings settings;
    double timeout_s;
} PipelineRecipe;

typedef struct {
    Tiny tiny; /* its engine is the pipeline, its stage is gone */
    Placement placement;
    const PipelineRecipe *recipe;
    StageSettings stage;
    Link *link[8];
} Pipeline;

/* Ends the program when something fails; a NULL engine when the engine refused. */
void pipeline_open(Pipeline *pipeline, const Recipe *recipe, const PipelineRecipe *how);
void pipeline_close(Pipeline *pipeline);

#endif
