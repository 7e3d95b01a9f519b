/* What a device does with the blocks of a model.  A stage owns its memory: the parameters, and for
 * the active submodel gradients, optimizer state and the activations the backward pass will read.
 *
 * A block computes y = f(x, w).  From dL/dy come dL/dx = (df/dx)' dL/dy, the input gradient, handed
 * to the block below, and dL/dw = (df/dw)' dL/dy, the weight gradient.  They are separate calls,
 * because BCD needs them for different blocks:
 *
 *                                            forward   input gradient   weight gradient, update
 *     prefix: below all active blocks           x
 *     active                                    x            x                    x
 *     frozen: an active block lies below        x            x
 *
 * In the lowest active block, input gradients are computed only as far as its own parameters need
 * them: nobody reads dL/dx of the block's input.
 *
 * The engine makes the calls, block by block, so that one engine serves every device:
 *
 *   activate            at the start of a phase
 *   begin               hand over a micro-batch; the first one to train on starts a step
 *   forward(b)          for b from the first block up
 *   loss                after the last block
 *   input_gradient(b)   from the last block down to the lowest active one
 *   weight_gradient(b)  after input_gradient(b), before input_gradient(b - 1)
 *   update or discard   once per step
 *
 * What only pipelines need stands behind these calls, and what only a device with memory of its own
 * offers is in stage_device.h. */
#pragma once

#include "base/alloc.h"
#include "dataset.h"
#include "model.h"
#include "optimizers/optimizer.h"

/* Which statistics a frozen batch norm normalises with while other blocks train. */
typedef enum { FROZEN_RUNNING, FROZEN_BATCH } FrozenNorm;

typedef struct {
    int batch;       /* the maximum number of samples in a micro-batch */
    bool recompute;  /* keep only block inputs, and recompute the rest in the backward pass */
    bool keep_state; /* keep a submodel's optimizer state when another becomes active */
    FrozenNorm frozen_norm;
    /* The correction of BREAD (Luo et al. 2025), on one CPU stage; 0: no correction.  The input
     * gradients of frozen blocks above the lowest active one are computed anyway, so these blocks
     * take a plain gradient step at each update, p -= correct_factor lr g, without clipping, decay
     * or state. */
    double correct_factor;
    OptimizerSettings optimizer; /* not its rate and schedule: the rate comes with each update */
    uint64_t seed;               /* of the initial parameters */
    bool skip_init;              /* draw no parameters, as the caller writes all of them */
    bool plain; /* on the CPU: use the slow ops of ref/ops instead of those of ref/fast */

    /* Of a pipeline; NULL for a stage that holds the whole model, one micro-batch at a time. */
    const bool *local;    /* [blocks]: lives on this stage, with the tied parameters it uses */
    const int *in_flight; /* [blocks]: micro-batches in flight; every call reads it, so it may
                           * change only right before an activate of other blocks */
    bool deferred;        /* keep what weight gradients read until they are computed: see select */

    /* Of a GPU. */
    Precision precision;
    /* Rows of the logits start at multiples of this many elements, for devices that want aligned
     * rows although a vocabulary may be odd; 0: rows follow each other without gaps. */
    int logits_align;
    size_t image_bytes; /* device memory for the images of data sets (keep_images); 0: none */
    bool offload;       /* optimizer state and update in host memory, as a baseline for BCD */
} StageSettings;

typedef struct {
    double loss_sum; /* over the targets that are not ignored */
    size_t count;    /* the number of those targets */
    size_t correct;  /* how many of them have the largest logit */
} Loss;

static inline void loss_add(Loss *sum, const Loss *part) {
    sum->loss_sum += part->loss_sum;
    sum->count += part->count;
    sum->correct += part->correct;
}

/* Returns the mean loss, or 0 if every target was ignored. */
static inline double loss_mean(const Loss *loss) {
    return loss->count ? loss->loss_sum / (double)loss->count : 0;
}

typedef enum {
    TENSOR_PARAMETER,
    TENSOR_BUFFER,
    TENSOR_GRADIENT,      /* of a parameter that trains */
    TENSOR_STATE0,        /* momentum or first moment, where the parameter has state */
    TENSOR_STATE1,        /* second moment */
    TENSOR_VALUE,         /* the output of a block; its number is the block's */
    TENSOR_VALUE_GRADIENT /* the gradient of a block's output, during the backward pass */
} TensorRole;

#define READ_FAILED SIZE_MAX

/* What the model alone says of its tensors; gradients and state are those of parameters.  Outputs
 * have no size without a batch, so only their blocks are known. */
static inline int tensor_count(const Model *model, TensorRole role) {
    return role == TENSOR_BUFFER ? model->buffers : model->params;
}
static inline int tensor_block(const Model *model, TensorRole role, int number) {
    if (role == TENSOR_VALUE || role == TENSOR_VALUE_GRADIENT) return number;
    return role == TENSOR_BUFFER ? model->buffer[number].block : model->param[number].block;
}
static inline size_t tensor_elements(const Model *model, TensorRole role, int number) {
    return role == TENSOR_BUFFER ? (size_t)model->buffer[number].count : model->param[number].count;
}

typedef enum { MODE_EVALUATE, MODE_TRAIN } Mode;

typedef struct Stage Stage;
typedef struct {
    /* Trains the blocks with active[b] from now on.  Frees the gradients, activations and optimizer
     * state of the last submodel before it allocates those of this one, so that the two never exist
     * at the same time.  State stays with keep_state, and where the block goes on training; new
     * state is zero.  Parameters and running statistics stay where they are.  Activating the same
     * blocks again changes nothing.  -1 and an error where a batch norm would have a single value,
     * or a batch too many positions (layout_check); nothing changes then.  Also -1 and an error
     * when memory runs out; the stage can then only be freed. */
    int (*activate)(Stage *stage, const bool *active);
    /* Starts a pass over a micro-batch of at most settings.batch samples.  Keeps a reference to the
     * batch's arrays, which must live until the pass is over. */
    void (*begin)(Stage *stage, const Batch *batch, Mode mode);
    void (*forward)(Stage *stage, int block);
    /* Overwrites *loss with that of the micro-batch.  With MODE_TRAIN, overwrites the logits with
     * the gradient of scale * loss_sum.  -1 and an error when the device has failed. */
    int (*loss)(Stage *stage, double scale, Loss *loss);
    /* Does nothing below the lowest active block. */
    void (*input_gradient)(Stage *stage, int block);
    /* Computes the gradients of the parameters that train and that the block's nodes use (a tied
     * head uses the embedding's).  The first contribution after an update or discard overwrites,
     * later ones accumulate, so that nothing needs to be zeroed. */
    void (*weight_gradient)(Stage *stage, int block);
    /* Gives up the current step: drops its gradients and restores the running statistics to what
     * they were when it started. */
    void (*discard)(Stage *stage);
    /* Overwrites *norm with that of all active gradients together.  -1 and an error when the device
     * has failed. */
    int (*gradient_norm)(Stage *stage, double *norm);
    /* Updates the active parameters from gradient_scale * gradient; the scale is that of
     * clipping. */
    void (*update)(Stage *stage, double lr, double gradient_scale);
    /* Copy a tensor to and from host memory.  read returns the number of its elements, 0 if it does
     * not exist now, READ_FAILED and an error if the device failed; with data NULL it copies
     * nothing.  write creates a kept state that does not exist yet; it returns -1 and an error for
     * a tensor that cannot exist.
     *
     * A block's output and its gradient have the n samples of the batch in flight, and are only of
     * local blocks and of the blocks that these read.  Unless they are stored (layout.h), they last
     * until the pass two blocks after the one that wrote them.  Nothing checks either. */
    size_t (*read)(Stage *stage, TensorRole role, int number, real *data);
    int (*write)(Stage *stage, TensorRole role, int number, const real *data);
    void (*free)(Stage *stage);

    /* ---- for pipelines ---- */

    /* Makes the calls that follow refer to this micro-batch.  Its activations of a block live in
     * slot micro_batch % in_flight[block].
     *
     * Zero-bubble pipelines delay weight gradients.  With settings.deferred, weight_gradient(b) of
     * a micro-batch may come after input gradients of the blocks below and after passes over other
     * micro-batches; select and begin then return to its own micro-batch.  It must come before a
     * forward pass reuses the micro-batch's slot of block b, or of block b - 1, whose output it
     * reads.  The bits are the same if each gradient gets its contributions in the same order. */
    void (*select)(Stage *stage, int micro_batch);
    /* Overwrites square[params] with the sum of squares of each active gradient on this stage, 0
     * for other parameters.  -1 and an error as above. */
    int (*gradient_squares)(Stage *stage, double *square);

    /* ---- optional: NULL where a stage does not offer it ---- */

    /* Returns a tensor where it is, in host memory, and sets *count to its elements; valid until
     * the next activate.  NULL if it does not exist now.  Block outputs last as in read. */
    real *(*view)(Stage *stage, TensorRole role, int number, size_t *count);

    /* ---- for generation ---- */

    /* A forward pass over `count` >= 1 tokens of one sequence, at positions first, first + 1, ...,
     * that follow those of earlier calls, whose keys and values are kept.
     * Overwrites logits[outputs] with those of the token after the last; on the CPU they have the
     * bits of a pass over the whole sequence.  first = 0 begins a sequence; positions may be read
     * again with other tokens.  -1 and an error when memory runs out, or where the sequence is
     * longer than the model's. */
    int (*extend)(Stage *stage, int first, const int *tokens, int count, real *logits);
} StageClass;

struct Stage {
    const StageClass *is; /* its functions, which stage_forward(stage, block) and others call */
    const struct StageDeviceClass *device; /* stage_device.h; NULL: the stage is in host memory */
    const Model *model;
    StageSettings settings;
    MemCount memory;
    uint64_t *optimizer_step; /* [blocks]: the updates that a block's optimizer state has seen; set
                               * them to resume */
};

/* ---- the calls of a stage, as above; one that a stage does not offer must not be called ---- */

static inline int stage_activate(Stage *stage, const bool *active) {
    return stage->is->activate(stage, active);
}
static inline void stage_begin(Stage *stage, const Batch *batch, Mode mode) {
    stage->is->begin(stage, batch, mode);
}
static inline void stage_forward(Stage *stage, int block) { stage->is->forward(stage, block); }
static inline int stage_loss(Stage *stage, double scale, Loss *loss) {
    return stage->is->loss(stage, scale, loss);
}
static inline void stage_input_gradient(Stage *stage, int block) {
    stage->is->input_gradient(stage, block);
}
static inline void stage_weight_gradient(Stage *stage, int block) {
    stage->is->weight_gradient(stage, block);
}
static inline void stage_discard(Stage *stage) { stage->is->discard(stage); }
static inline int stage_gradient_norm(Stage *stage, double *norm) {
    return stage->is->gradient_norm(stage, norm);
}
static inline void stage_update(Stage *stage, double lr, double gradient_scale) {
    stage->is->update(stage, lr, gradient_scale);
}
static inline size_t stage_read(Stage *stage, TensorRole role, int number, real *data) {
    return stage->is->read(stage, role, number, data);
}
static inline int stage_write(Stage *stage, TensorRole role, int number, const real *data) {
    return stage->is->write(stage, role, number, data);
}
static inline void stage_free(Stage *stage) { stage->is->free(stage); }
static inline void stage_select(Stage *stage, int micro_batch) {
    stage->is->select(stage, micro_batch);
}
static inline int stage_gradient_squares(Stage *stage, double *square) {
    return stage->is->gradient_squares(stage, square);
}
static inline real *stage_view(Stage *stage, TensorRole role, int number, size_t *count) {
    return stage->is->view(stage, role, number, count);
}
/* -1 and an error for a model or a sequence that no stage can extend; extend begins with it. */
int stage_extend_check(const Model *model, int first, int count);
static inline int stage_extend(Stage *stage, int first, const int *tokens, int count,
                               real *logits) {
    return stage->is->extend(stage, first, tokens, count, logits);
}

/* Creates a stage on the CPU, with parameters initialised from the seed.  The model, settings.local
 * and settings.in_flight must outlive it.  NULL and an error if memory runs out, or for an unknown
 * optimizer. */
Stage *stage_ref_create(const Model *model, StageSettings settings);
