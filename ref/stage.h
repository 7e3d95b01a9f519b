/* What a device does with a range of blocks.  A stage owns the memory of its blocks: parameters,
 * and for the active submodel gradients and optimizer state; for each micro-batch in flight, a
 * *slot*, the activations the backward pass will read.
 *
 * The order of calls is the engine's business, block by block, so that one engine serves every
 * device, and a pipeline can interleave micro-batches or put off weight gradients:
 *
 *   activate            once per submodel
 *   begin(slot)         hand over a micro-batch
 *   forward(b)          for b from the first block up
 *   loss                after the model's last block
 *   input_gradient(b)   from the last block down to the lowest active one
 *   weight_gradient(b)  for active blocks (and blocks that use a tied active parameter), after
 *                       input_gradient(b) and before that of another block overwrites its gradients
 *   update              once per step
 */
#ifndef REF_STAGE_H
#define REF_STAGE_H

#include "alloc.h"
#include "dataset.h"
#include "model.h"
#include "optimizer.h"

typedef enum { FROZEN_RUNNING, FROZEN_BATCH } FrozenNorm;

typedef struct {
    int batch;              /* samples in a micro-batch, at most */
    bool recompute;         /* keep only block inputs; recompute the rest in the backward pass */
    bool keep_state;        /* keep a submodel's optimizer state when another becomes active */
    FrozenNorm frozen_norm; /* which statistics a frozen batch norm uses while training */
    OptimizerSettings optimizer;
    uint64_t seed; /* of the initial parameters */
} StageSettings;

typedef struct {
    double loss_sum; /* over targets that are not ignored */
    size_t count;    /* of those targets */
    size_t correct;
} Loss;

typedef enum {
    TENSOR_PARAMETER,
    TENSOR_BUFFER,
    TENSOR_GRADIENT, /* active parameters only */
    TENSOR_STATE0,   /* momentum or first moment; where state exists */
    TENSOR_STATE1,   /* second moment */
    TENSOR_VALUE     /* boundary activations: the output of a block; the number is the block's */
} TensorRole;

typedef enum { PASS_EVALUATE, PASS_TRAIN } Pass;

typedef struct Stage Stage;
typedef struct {
    /* Blocks with active[b] are trained from now on.  Allocates their gradients and zeroed state,
     * frees the last submodel's (state unless keep_state), lays out the activations. */
    int (*activate)(Stage *stage, const bool *active);
    /* Takes the batch's data by reference: it must live until the pass is over. */
    int (*begin)(Stage *stage, const Batch *batch, Pass pass);
    void (*forward)(Stage *stage, int block);
    /* With PASS_TRAIN also turns the logits into the gradient of scale * loss_sum. */
    Loss (*loss)(Stage *stage, double scale);
    void (*input_gradient)(Stage *stage, int block);
    void (*weight_gradient)(Stage *stage, int block);
    /* Zeroes nothing: the first weight gradients after an update (or activate) overwrite. */
    double (*gradient_norm)(Stage *stage); /* of the active gradients */
    void (*update)(Stage *stage, double lr, double gradient_scale);
    /* Host copies.  read returns the number of elements, 0 if the tensor does not exist now;
     * data NULL only asks.  VALUE: [n] samples of the batch in flight. */
    size_t (*read)(Stage *stage, TensorRole role, int number, real *data);
    int (*write)(Stage *stage, TensorRole role, int number, const real *data);
    /* Updates seen by the optimizer state of a block, and setting it (resume). */
    uint64_t (*age)(Stage *stage, int block);
    void (*set_age)(Stage *stage, int block, uint64_t age);
    MemCount *(*memory)(Stage *stage);
    void (*free)(Stage *stage);
} StageClass;

struct Stage {
    const StageClass *is;
    const Model *model;
    StageSettings settings;
};

/* The CPU stage: the whole model, parameters initialised from the seed.  NULL and an error if
 * memory runs out. */
Stage *stage_ref_create(const Model *model, StageSettings settings);

#endif
