/* What the BCD loop drives: one device or a pipeline of them, which the loop cannot tell apart.
 *
 * An engine has one stage (stage.h) or many.  It cuts batches into micro-batches, calls the blocks
 * in order, and knows when gradients are complete.  One step takes a batch B with n targets that
 * are not ignored, in however many micro-batches, and changes the active parameters v:
 *
 *     g = (1/n) sum over the targets of B of dL/dv   L is the loss of one target
 *     g = g min(1, clip_norm / |g|)                  |g| over the active submodel alone
 *     v = update of v from g, as in optimizers/optimizer.h
 *
 * A batch norm that trains normalises over each micro-batch, so with it L depends on how B is cut,
 * and without it g does not. */
#pragma once

#include "stage.h"

typedef struct Engine Engine;
/* Batches of step, gradient_norm and pre_infer have at most micro_batches * StageSettings.batch
 * samples for each replica of a pipeline.  Nothing checks it. */
typedef struct {
    /* Trains the blocks with active[b] from now on.  stage.h says what is freed and allocated.
     * -1 and an error as of a stage, or on one device if no block is active; the engine can then
     * only be freed. */
    int (*activate)(Engine *engine, const bool *active);
    /* Does one update of the active submodel from one batch: forward, backward, clip, update.
     * Overwrites *loss.  -1 and an error if the loss is not finite or, where gradients are clipped,
     * the gradient's norm; parameters, state and running statistics are then as before the step.
     * Also -1 and an error if the device, a rank or the prefix cache (memory, file) has failed; the
     * engine can then only be freed. */
    int (*step)(Engine *engine, const Batch *batch, double lr, Loss *loss);
    /* Computes the norm of the active submodel's gradient on one batch and changes nothing.  -1 and
     * an error as of a step, here always if the norm is not finite.  NULL in pipelines, which do
     * not offer it. */
    int (*gradient_norm)(Engine *engine, const Batch *batch, double *norm);
    /* Caches the outputs of the frozen prefix for a batch, ahead of the steps that will use them
     * (pre-inference).  Changes nothing else.  -1 and an error if memory runs out, or the cache's
     * file, the device or a rank has failed.  NULL on one device, which could only compute the same
     * at another time. */
    int (*pre_infer)(Engine *engine, const Batch *batch);
    /* Adds the loss of a batch to *loss, with the running statistics of batch norms.  Micro-batches
     * are added one by one, in their order, so that the bits depend neither on how many samples a
     * call has, if all but the last have whole micro-batches, nor on the ranks of a pipeline; those
     * of replicas are added up replica by replica.  -1 and an error if the device or a rank has
     * failed. */
    int (*evaluate)(Engine *engine, const Batch *batch, Loss *loss);
    /* As of a stage; in pipelines only of parameters, buffers, gradients and state.  They also fail
     * when a rank is gone. */
    size_t (*read)(Engine *engine, TensorRole role, int number, real *data);
    /* Returns a tensor where it is and sets *count to its elements; valid until the next activate.
     * NULL if it does not exist now or is in no memory of this process: read copies it.  The
     * function is NULL in pipelines. */
    real *(*view)(Engine *engine, TensorRole role, int number, size_t *count);
    int (*write)(Engine *engine, TensorRole role, int number, const real *data);
    /* Returns the updates that a block's optimizer state has seen. */
    uint64_t (*optimizer_step)(Engine *engine, int block);
    /* Sets that number, to resume.  Comes after activate, which makes it 0 where state is freed. */
    void (*set_optimizer_step)(Engine *engine, int block, uint64_t t);
    /* Returns the counts of the stage; valid until the engine is freed.  A pipeline asks all ranks
     * and returns their sum, which stays as it was if a rank is gone. */
    const MemCount *(*memory)(Engine *engine);
    /* Frees the engine and its stage; in a pipeline also ends the other ranks. */
    void (*free)(Engine *engine);
} EngineClass;

struct Engine {
    const EngineClass *is; /* its functions, which engine_step(engine, ...) and others call */
    const Model *model;
};

/* ---- the calls of an engine, as above ---- */

static inline int engine_activate(Engine *engine, const bool *active) {
    return engine->is->activate(engine, active);
}
static inline int engine_step(Engine *engine, const Batch *batch, double lr, Loss *loss) {
    return engine->is->step(engine, batch, lr, loss);
}
static inline int engine_gradient_norm(Engine *engine, const Batch *batch, double *norm) {
    return engine->is->gradient_norm(engine, batch, norm);
}
static inline int engine_pre_infer(Engine *engine, const Batch *batch) {
    return engine->is->pre_infer(engine, batch);
}
static inline int engine_evaluate(Engine *engine, const Batch *batch, Loss *loss) {
    return engine->is->evaluate(engine, batch, loss);
}
static inline size_t engine_read(Engine *engine, TensorRole role, int number, real *data) {
    return engine->is->read(engine, role, number, data);
}
static inline real *engine_view(Engine *engine, TensorRole role, int number, size_t *count) {
    return engine->is->view(engine, role, number, count);
}
static inline int engine_write(Engine *engine, TensorRole role, int number, const real *data) {
    return engine->is->write(engine, role, number, data);
}
static inline uint64_t engine_optimizer_step(Engine *engine, int block) {
    return engine->is->optimizer_step(engine, block);
}
static inline void engine_set_optimizer_step(Engine *engine, int block, uint64_t t) {
    engine->is->set_optimizer_step(engine, block, t);
}
static inline const MemCount *engine_memory(Engine *engine) { return engine->is->memory(engine); }
static inline void engine_free(Engine *engine) { engine->is->free(engine); }

/* How a block spent its time in the last step, for `bcd trace`. */
typedef struct {
    double ms[PASSES];
} BlockTimes;

typedef struct {
    int micro_batches; /* gradient accumulation: a batch is cut into at most so many parts */
    /* The prefix cache fills cache_device_bytes of the device's memory first, then cache_bytes of
     * host memory, then a file in cache_dir (NULL: no file; what does not fit is computed again).
     * There is no cache if both sizes are 0. */
    size_t cache_device_bytes, cache_bytes;
    const char *cache_dir;
    /* times[blocks] and update_ms are overwritten by each step; both NULL: not measured. */
    BlockTimes *times;
    double *update_ms;
} EngineSettings;

/* Creates an engine of one stage, which holds the whole model; the engine frees it.  `data` is the
 * data set whose outputs are cached; NULL without a cache.  What the settings point to must outlive
 * the engine.  NULL and an error when memory runs out or the cache would not be exact; the stage is
 * then still the caller's. */
Engine *engine_single_create(Stage *stage, EngineSettings settings, const Dataset *data);
