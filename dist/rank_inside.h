/* Inside of a rank's engine, shared by its files: engine_rank.c has its life and its steps,
 * rank_tasks.c carries out schedules, rank_boundary.c has what is on its way between chunks,
 * rank_tied.c tied parameters, rank_replicas.c what replicas of the pipeline add up, rank_cache.c
 * the prefix cache.
 *
 * An error that not all ranks come to by themselves is reported to the others by rank_alone, or
 * they would wait for this one. */
#ifndef DIST_RANK_INSIDE_H
#define DIST_RANK_INSIDE_H

#include "../ref/prefix_cache.h"
#include "engine_rank.h"

/* Lives on the rank of the lowest active block, in each replica; the others know what it recalled.
 */
typedef struct {
    PrefixCache kept;
    MemCount host;   /* counts it, where a device counts its own memory alone */
    int lowest;      /* active block, whose inputs are kept; -1: no prefix, or no cache */
    bool recalled;   /* in this step the prefix need not run */
    real *values;    /* [samples of a step][width] of this rank's turn as keeper; else NULL */
    int *unused;     /* [samples of a step]: places on a device, of which there are none */
    size_t capacity; /* samples of a step, of all replicas */
} RankCache;

typedef struct {
    Engine base;
    Stage *stage;
    Transport *transport, *replicas;
    const Placement *placement;
    RankBlocks blocks;
    PipelineSettings settings;
    bool *active;    /* [blocks] */
    bool *trains;    /* [chunks] */
    ChunkCost *cost; /* [chunks] */
    Schedule training, recalling, evaluation;
    /* Values and gradients on their way to a chunk, [chunks][micro_batches]: received or made here,
     * and not yet used or sent; messages of the device if the transport carries them.  NULL: none.
     */
    void **value, **gradient;
    bool messages;
    double *square; /* [ranks + 1][params] */
    RankCache cache;
    /* The step that runs: */
    const Batch *whole; /* of all replicas */
    Batch batch;        /* this replica's share, in parts */
    int part_size;      /* samples of each part, but for the last */
    Mode mode;
    double scale;
    Loss loss; /* so far; on the rank of the last chunk */
} RankEngine;

/* ---- who has what ---- */

static inline int chunk_rank(const RankEngine *e, int chunk) {
    return e->placement->rank_of[chunk];
}
static inline int block_rank(const RankEngine *e, int block) {
    return chunk_rank(e, e->placement->chunk_of[block]);
}
int chunk_first_block(const RankEngine *e, int chunk);
int chunk_end_block(const RankEngine *e, int chunk);
/* Samples of a part of the step; the last ones may have none. */
int part_samples(const RankEngine *e, int micro);

/* Tells the ranks of this pipeline and of its replicas why this one gives up.  Returns -1. */
int rank_alone(RankEngine *engine);

/* ---- schedules ---- */

/* Carries out this rank's list for the batch of the step.  -1 and an error when a rank is missing
 * or memory runs out. */
int rank_run(RankEngine *engine, const Schedule *schedule);

/* A value on its way up into a chunk, or the gradient of a chunk's output on its way down to it. */
typedef struct {
    bool gradient;
    int to, micro;
} Boundary;
/* Out of the stage, into the stage, between ranks (peer_chunk's). */
int boundary_take(RankEngine *engine, Boundary boundary);
int boundary_give(RankEngine *engine, Boundary boundary);
int boundary_transfer(RankEngine *engine, Boundary boundary, bool send, int peer_chunk);
/* Before the steps of a plan: where messages are the device's, it has memory for all of them. */
int boundary_reserve_all(RankEngine *engine, const SchedulePlan *plan);
/* Drops what a step that was given up has left on its way. */
void boundary_drop_all(RankEngine *engine);

/* ---- tied parameters ---- */

/* Before the update the user's share of the gradient goes to the owner; after it the new values
 * come back. */
int rank_share_tied(RankEngine *engine, bool before);

/* ---- replicas of the pipeline ---- */

int rank_replicas(const RankEngine *engine);
/* Samples of a batch that each replica gets; the last ones may get fewer, or none. */
int rank_share(const RankEngine *engine, int samples);
/* The active gradients of all replicas, added in their order, in place of each replica's own.
 * Memory of blocks that are frozen is not touched, nor sent. */
int rank_add_gradients(RankEngine *engine);
/* Running statistics of active batch norms become the mean over replicas, by their samples: as of
 * one device that had seen micro-batches whose statistics are that mean. */
int rank_average_buffers(RankEngine *engine);
/* Every replica's loss, added in their order. */
int rank_add_losses(RankEngine *engine, Loss *loss);

/* ---- prefix cache ---- */

int rank_cache_open(RankEngine *engine);
void rank_cache_close(RankEngine *engine);
/* Another submodel is active: forgets outputs of another prefix. */
int rank_cache_activate(RankEngine *engine);
/* Before a step: is all of this replica's share kept?  All ranks of the pipeline then know. */
int rank_cache_recall(RankEngine *engine);
/* Before block `cache.lowest` runs: writes what is kept of this part, or notes what came. */
int rank_cache_pass(RankEngine *engine, int micro);
/* After the step: keeps what was noted, by all replicas. */
int rank_cache_keep(RankEngine *engine);

#endif
