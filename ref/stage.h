/* What a device does with the blocks of a model.  A stage owns its memory: parameters, and for the
 * active submodel gradients, optimizer state and the activations the backward pass will read.
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
 * The lowest active block computes of its input gradient only what its own parameters need; nobody
 * reads dL/dx of its input.
 *
 * The order of calls is the engine's business, block by block, so that one engine serves every
 * device:
 *
 *   activate            once per submodel
 *   begin               hand over a micro-batch; the first one to train on starts a step
 *   forward(b)          for b from the first block up
 *   loss                after the last block
 *   input_gradient(b)   from the last block down to the lowest active one
 *   weight_gradient(b)  after input_gradient(b), before input_gradient(b - 1)
 *   update, discard     once per step, one of them
 *
 * With settings.deferred weight_gradient(b) of a micro-batch may come as late as its slots live:
 * after input gradients of the blocks below, after any pass over other micro-batches (begin and
 * select then turn back to its own), but before a forward pass uses its slot of block b, or of
 * block b - 1, whose output it reads, again.  The numbers are the same to the last bit if each
 * gradient gets its contributions in the same order.
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
    /* 0: none.  The rate of the correction of BREAD (Luo et al. 2024), on one CPU stage: frozen
     * blocks above the lowest active one, whose input gradients are computed anyway, take a plain
     * gradient step at each update, p -= correct_lr g, without clipping, decay or state. */
    double correct_lr;
    OptimizerSettings optimizer;
    uint64_t seed; /* of the initial parameters */
    bool plain;    /* the CPU: the ops of ref/ops, slow, in place of those of ref/fast */
    Precision precision;
    /* Rows of the logits start at multiples of so many numbers, where a device wants rows aligned
     * (a vocabulary may be odd); 0: no gaps. */
    int logits_align;
    /* A stage of a pipeline; NULL: the whole model, one micro-batch at a time. */
    const bool *local;    /* [blocks] that live on this stage, with the tied parameters they use */
    const int *in_flight; /* [blocks]: micro-batches in flight; looked at by every activate */
    /* Keep what weight gradients read until they are taken (see above).  Once a stage is made this
     * says whether it does: one that cannot has set it to false. */
    bool deferred;
    /* Of data sets whose images are to stay on a device (keep_images); 0: none. */
    size_t image_bytes;
    bool offload; /* optimizer state and update in host memory (GPU stages: the baseline of BCD) */
} StageSettings;

typedef struct {
    double loss_sum; /* over targets that are not ignored */
    size_t count;    /* of those targets */
    size_t correct;
} Loss;

static inline void loss_add(Loss *sum, const Loss *part) {
    sum->loss_sum += part->loss_sum;
    sum->count += part->count;
    sum->correct += part->correct;
}

/* The mean loss, 0 if every target was ignored. */
static inline double loss_mean(const Loss *loss) {
    return loss->count ? loss->loss_sum / (double)loss->count : 0;
}

typedef enum {
    TENSOR_PARAMETER,
    TENSOR_BUFFER,
    TENSOR_GRADIENT, /* active parameters only */
    TENSOR_STATE0,   /* momentum or first moment; where state exists */
    TENSOR_STATE1,   /* second moment */
    TENSOR_VALUE,    /* boundary activations: the output of a block; the number is the block's */
    TENSOR_VALUE_GRADIENT /* its gradient, in the backward pass: what stages hand down */
} TensorRole;

#define READ_FAILED SIZE_MAX /* what read returns then */

typedef enum { MODE_EVALUATE, MODE_TRAIN } Mode;

typedef struct Stage Stage;
typedef struct {
    /* Blocks with active[b] are trained from now on.  Frees the last submodel's gradients, state
     * (unless keep_state, or its block goes on training) and activations, then allocates this
     * one's, in this order, so that two submodels' are never there at the same time; new state is
     * zero.  Parameters and running statistics stay where they are.  Activating the same blocks
     * again changes nothing.  -1 and an error when memory runs out, or where a batch norm would
     * have a single value (layout_check). */
    int (*activate)(Stage *stage, const bool *active);
    /* Takes the batch's data by reference: it must live until the pass is over.  n is at most
     * settings.batch. */
    void (*begin)(Stage *stage, const Batch *batch, Mode mode);
    /* In a pipeline: calls from now on are about this micro-batch, whose activations of a block
     * live in slot micro_batch % in_flight[block]. */
    void (*select)(Stage *stage, int micro_batch);
    void (*forward)(Stage *stage, int block);
    /* With MODE_TRAIN also turns the logits into the gradient of scale * loss_sum. */
    Loss (*loss)(Stage *stage, double scale);
    /* Below the lowest active block, nothing is done. */
    void (*input_gradient)(Stage *stage, int block);
    /* Of the active parameters the block's nodes use (a tied head uses the embedding's).  The first
     * ones after discard or update overwrite, later ones accumulate: nothing needs zeroing. */
    void (*weight_gradient)(Stage *stage, int block);
    /* Gives a step up: forgets its gradients, and running statistics are again as they were when it
     * started. */
    void (*discard)(Stage *stage);
    double (*gradient_norm)(Stage *stage); /* of the active gradients */
    /* square[params]: sum of squares of each active gradient that is here, 0 for others. */
    void (*gradient_squares)(Stage *stage, double *square);
    /* Optimizer step on the active parameters with gradient_scale * gradient (clipping). */
    void (*update)(Stage *stage, double lr, double gradient_scale);
    /* Host copies.  read returns the number of elements, 0 if the tensor does not exist now,
     * READ_FAILED and an error if the device failed; data NULL only asks.  write makes a kept state
     * that does not exist yet; -1 and an error for what cannot exist.  VALUE: [n] samples of the
     * batch in flight, of a block's output. */
    size_t (*read)(Stage *stage, TensorRole role, int number, real *data);
    int (*write)(Stage *stage, TensorRole role, int number, const real *data);
    /* Optimizer steps of the optimizer state of a block, and setting it (resume). */
    uint64_t (*optimizer_step)(Stage *stage, int block);
    void (*set_optimizer_step)(Stage *stage, int block, uint64_t t);
    MemCount *(*memory)(Stage *stage);
    void (*free)(Stage *stage);

    /* ---- what a device may offer; NULL: the engine does without ---- */

    /* After begin, and with the outputs of the blocks below `first` in place: forward from there,
     * loss, gradients and, if `last`, clipping and update, as one piece of work that a device can
     * record and repeat.  -1 and an error, and nothing updated, if the loss or the gradient's norm
     * is not finite. */
    int (*step)(Stage *stage, int first, double scale, bool last, double lr, Loss *loss);
    /* Keeps the bytes of a data set's images, within settings.image_bytes for all, and makes the
     * images of batches of it from now on (Dataset.resident).  -1 and an error: no room. */
    int (*keep_images)(Stage *stage, Dataset *data);
    /* Device time from this call to the next is added to *ms.  NULL: to nobody, and waits until all
     * that was charged so far is added. */
    void (*charge_time)(Stage *stage, double *ms);
    /* A store of block outputs in the device's own memory: room for as many samples of `width`
     * numbers as `bytes` hold (0 frees it); returns how many.  Then between it and block `block`'s
     * output of the n samples in flight, by slot. */
    int (*cache_reserve)(Stage *stage, size_t width, size_t bytes);
    void (*cache_put)(Stage *stage, int block, const int *slots, int n);
    void (*cache_get)(Stage *stage, int block, const int *slots, int n);
    /* Messages: copies of boundary values in the device's memory, for transports that carry them as
     * they are; nothing waits for the host.  An empty one, with room for `count` numbers; NULL and
     * an error.  take: message = the block's output, or its gradient, of the n samples in flight.
     * give: the other way round, as write.  free needs no stage: another one of the same device may
     * have made the message. */
    void *(*message_create)(Stage *stage, size_t count);
    void (*message_take)(Stage *stage, TensorRole role, int block, void *message);
    int (*message_give)(Stage *stage, TensorRole role, int block, void *message);
    void (*message_free)(void *message);
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
