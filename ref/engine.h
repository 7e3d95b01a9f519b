/* What the BCD loop needs, and nothing else.  One device or a pipeline: the loop cannot tell.
 *
 * An engine drives one stage (stage.h) or many: it cuts batches into micro-batches, calls the
 * blocks in order, and decides when gradients are complete.  A step from a batch B of n targets
 * that count, with the active parameters v:
 *
 *     g = (1/n) sum over B of dL/dv                  whatever the number of micro-batches
 *     g = g min(1, clip_norm / |g|)                  |g| over the active submodel alone
 *     v = update of v from g, as in optimizer.h */
#ifndef REF_ENGINE_H
#define REF_ENGINE_H

#include "stage.h"

typedef struct Engine Engine;
typedef struct {
    /* Blocks with active[b] train from now on; what is freed and allocated then: see stage.h. */
    int (*activate)(Engine *engine, const bool *active);
    /* One update of the active submodel from one batch: forward, backward, clip, update.  -1 and an
     * error if the loss or the gradient's norm is not finite; everything is then as before the
     * step, running statistics too. */
    int (*step)(Engine *engine, const Batch *batch, double lr, Loss *loss);
    /* The norm of the active submodel's gradient, of one batch; all else is as before.  -1 and an
     * error if the loss is not finite.  NULL where the engine has none: pipelines. */
    int (*gradient_norm)(Engine *engine, const Batch *batch, double *norm);
    /* Forward only, running statistics. */
    int (*evaluate)(Engine *engine, const Batch *batch, Loss *loss);
    /* As of a stage; READ_FAILED and an error also where a rank of a pipeline is gone. */
    size_t (*read)(Engine *engine, TensorRole role, int number, real *data);
    int (*write)(Engine *engine, TensorRole role, int number, const real *data);
    uint64_t (*optimizer_step)(Engine *engine, int block);
    void (*set_optimizer_step)(Engine *engine, int block, uint64_t t);
    const MemCount *(*memory)(Engine *engine);
    void (*free)(Engine *engine);
} EngineClass;

struct Engine {
    const EngineClass *is;
    const Model *model;
};

/* How a block spent its time in the last step, for `bcd trace`. */
typedef struct {
    double forward_ms, input_gradient_ms, weight_gradient_ms;
} BlockTimes;

typedef struct {
    int micro_batches;         /* gradient accumulation: a batch is cut into so many parts */
    size_t cache_device_bytes; /* prefix cache: so much in the device's own memory, */
    size_t cache_bytes;        /* then so much in host memory; both 0: no cache */
    const char *cache_dir;     /* beyond that, a file in this directory; NULL: refuse */
    BlockTimes *times;         /* [blocks] to fill at each step, or NULL */
    double *update_ms;         /* likewise */
} EngineSettings;

/* One stage that holds the whole model; takes it over, and frees it with itself.  `data` is what
 * the cache is for (NULL without cache). */
Engine *engine_single_create(Stage *stage, EngineSettings settings, const Dataset *data);

/* A cached output is exact only if the prefix would compute the same again: -1 and an error where
 * it would not.  For engines; `samples` of the data set, 0: there is none. */
int engine_check_cache(const Stage *stage, int samples, bool augmented);

#endif
