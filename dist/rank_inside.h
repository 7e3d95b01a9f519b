/* The engine of one rank, shared by its files:
 *   engine_rank.c     the engine: activate, step, evaluate, read, write
 *   rank_tasks.c      executes a schedule, with the messages between chunks
 *   rank_sums.c       adds up gradients of tied parameters and of replicas
 *   rank_cache.c      the prefix cache
 *   rank_infer.c      pre-inference, which fills it
 *
 * Some errors occur on all ranks alike, such as a loss that is not finite.  Any other error must be
 * reported to the other ranks, because they would wait for this one: the functions below that can
 * fail return 0, or -1 and an error, and engine_rank.c aborts the transports. */
#pragma once

#include "../ref/prefix_cache.h"
#include "engine_rank.h"

/* The prefix cache of a pipeline.  In each replica the rank of the lowest active block holds that
 * block's inputs; the other ranks only know whether they are in the cache. */
typedef struct {
    PrefixCache prefix;
    MemCount host; /* counts the cache's memory where a device counts only its own */
    int lowest;    /* the lowest active block; -1 if there is no prefix or no cache */
    bool hit;      /* all inputs of this step are in the cache, so the prefix need not run */
    real *values;  /* [samples of all replicas][width]: inputs of a step, if this rank holds them;
                    * else NULL */
} RankCache;

/* Pre-inference, from the first batch of a phase that is inferred until the phase trains: a stage
 * that holds the frozen prefix alone. */
typedef struct {
    bool open;
    Stage *stage;      /* NULL on a rank that does not infer */
    RankBlocks blocks; /* of that stage */
    real *values; /* [samples of a replica][width]: outputs, if this rank does not hold the cache */
    Schedule pieces; /* where the first rank has no room for the prefix */
} RankInference;

/* Runs of a schedule with as many samples do the same work. */
typedef struct {
    const Schedule *schedule;
    int samples;
} RankRun;

typedef struct {
    Engine base;
    Stage *stage;
    Transport *transport; /* between the ranks of this pipeline */
    Transport *replicas;  /* between the same ranks of all replicas of it */
    const Placement *placement;
    RankBlocks blocks;
    PipelineSettings settings;
    bool *active;    /* [blocks] */
    ChunkCost *cost; /* [chunks] */
    Schedule training, evaluation;
    Schedule cached_training; /* training without the prefix, for a step that the cache has */
    /* [2][chunks][micro_batches]: values, then gradients, on their way to a chunk, which this rank
     * has received or computed, and not used or sent yet; NULL: none.  They are messages of the
     * device if `messages`, otherwise arrays in host memory. */
    void **transit;
    bool messages;         /* in the current run of a schedule */
    bool has_messages;     /* the stage and the transport have them */
    RankRun run_before[8]; /* the runs of schedules since the submodel became active */
    int runs_before;
    double *square; /* [ranks][params]: sums of squares of gradients, for the norm */
    RankCache cache;
    RankInference inference;
    /* The current step: */
    const Batch *global_batch; /* of all replicas */
    Batch batch;               /* the samples of this replica, cut into micro-batches */
    int micro_batch_size;      /* the last micro-batches may have fewer samples */
    Mode mode;
    bool infers; /* the blocks below the lowest active one run alone, for the cache */
    double scale;
    Loss loss; /* so far, on the rank of the last chunk */
} RankEngine;

/* ---- chunks and micro-batches ---- */

static inline int chunk_rank(const RankEngine *e, int chunk) {
    return e->placement->rank_of[chunk];
}
/* Reads a tensor of this rank's stage. */
static inline int rank_read_stage(RankEngine *e, TensorRole role, int number, real *data) {
    return stage_read(e->stage, role, number, data) == READ_FAILED ? -1 : 0;
}

/* ---- schedules ---- */

/* Executes this rank's list for the batch of the step. */
int rank_run_schedule(RankEngine *engine, const Schedule *schedule);

/* Before the steps of a plan: makes sure that the device has memory for all messages between
 * chunks, if the rank is a process; ranks that are threads share what each of them leaves. */
int messages_reserve(RankEngine *engine, const SchedulePlan *plan);
/* Drops the messages that are left after a step has failed. */
void messages_drop(RankEngine *engine);

/* ---- tied parameters ---- */

/* Before the update, with TENSOR_GRADIENT: sends the gradients of tied parameters to the ranks that
 * own them, which add them to theirs.  After it, with TENSOR_PARAMETER: sends the new values back.
 */
int tied_exchange(RankEngine *engine, TensorRole role);

/* ---- replicas of the pipeline ---- */

/* Returns the samples of a batch that each replica gets; the last ones may get fewer, or none. */
int replica_samples(const RankEngine *engine, int samples);
/* Overwrites the active gradients with their sum over all replicas, added in the order of
 * replicas. */
int replicas_reduce_gradients(RankEngine *engine);
/* Overwrites the running statistics of active batch norms with their mean over the replicas,
 * weighted by samples. */
int replicas_average_buffers(RankEngine *engine);
/* Overwrites *loss with the sum over the replicas, added in their order. */
int replicas_reduce_loss(RankEngine *engine, Loss *loss);

/* ---- prefix cache ---- */

int rank_cache_open(RankEngine *engine);
void rank_cache_close(RankEngine *engine);
/* After another submodel became active: empties the cache if the prefix is another one now. */
int rank_cache_activate(RankEngine *engine);
/* Before a step: looks up the samples of this replica, and tells all ranks of the pipeline in
 * cache.hit whether all of them are in the cache. */
int rank_cache_look_up(RankEngine *engine);
/* Before block cache.lowest runs on a micro-batch: copies its inputs into the stage on a hit, and
 * out of it for rank_cache_store otherwise. */
int rank_cache_copy(RankEngine *engine, int micro);
/* Returns the elements that a sample has in the cache. */
size_t rank_cache_width(const RankEngine *engine);
/* Returns where the samples of this replica begin in cache.values. */
real *rank_cache_values(const RankEngine *engine);
/* Returns true if this rank holds the cache. */
bool rank_cache_is_here(const RankEngine *engine);
/* After the step: caches the inputs that were copied out of the stage, those of all replicas. */
int rank_cache_store(RankEngine *engine);

/* ---- pre-inference ---- */

/* Computes the outputs of the prefix for the samples of the present batch, which all ranks divide,
 * and caches them where the lowest active block is. */
int rank_infer(RankEngine *engine);
/* Frees the stage of the prefix, before the phase trains. */
void rank_infer_close(RankEngine *engine);
