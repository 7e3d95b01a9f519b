/* A tiny training (tests/ref/tiny.h) over a pipeline of threads, or replicas of one, instead of one
 * stage. */
#pragma once

#include "../../dist/engine_rank.h"
#include "../ref/tiny.h"

enum { PIPELINE_MAX_RANKS = 8 }; /* of all replicas together */

#define LLAMA "llama:layers=4,width=8,heads=2,ffn=12,context=6,vocabulary=11"
#define GPT "gpt:layers=4,width=8,heads=2,context=6,vocabulary=11"
#define RESNET "resnet:depth=14,width=4,classes=5,size=8"

typedef struct {
    PlacementKind placement;
    int ranks, submodels;      /* of the placement; the Recipe says which submodels train */
    PipelineSettings settings; /* the Recipe sets those of the cache */
    int replicas;              /* 0 stands for 1 */
    bool pre_infer;            /* with settings.infer_ranks */
    void (*message_free)(void *message);    /* of the stages that the Recipe creates, or NULL */
    Transport *(*join)(Transport *control); /* makes the transport of a pipeline; NULL: control */
} PipelineRecipe;

/* A placement with one chunk on each rank. */
PipelineRecipe pipeline_plain(int ranks, int micro_batches);

/* What a rank has sent to others of its pipeline. */
typedef struct {
    int values, gradients;   /* messages */
    size_t collective_bytes; /* in collectives, to ranks above 0 */
} Traffic;

typedef struct {
    Tiny tiny; /* its engine is the pipeline, and its stage NULL */
    Placement placement;
    PipelineRecipe how;
    Stage *(*create)(const Model *model, StageSettings settings);
    StageSettings settings;
    Stage *stage[PIPELINE_MAX_RANKS]; /* of each rank, owned by the engine; to read it, first call
                                       * engine_memory, which waits for all ranks */
    Traffic sent[PIPELINE_MAX_RANKS];
    int threads[PIPELINE_MAX_RANKS]; /* that each rank computes with */
    Transport *transport[PIPELINE_MAX_RANKS];
} Pipeline;

/* Opens the training.  tiny.engine is NULL, with an error, if a rank could not create its engine.
 * Any other failure ends the program. */
void pipeline_open(Pipeline *pipeline, const Recipe *recipe, const PipelineRecipe *how);
void pipeline_close(Pipeline *pipeline);
