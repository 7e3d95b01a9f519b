/* The optimizer step of the active submodel: one fused pass over all its tensors
 * (ref/optimizers/optimizer.h has the equations).  Everything that changes from step to step lies
 * in a small device array that update_prepare refreshes, so that norm, clipping and update can be
 * captured in a graph. */
#pragma once

#include "../ref/optimizers/optimizer.h"
#include "kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One tensor, as the update sees it; device memory. */
typedef struct {
    void *p;                     /* the weights the passes read: of the value type */
    float *master;               /* fp32 master copy; p itself unless the precision is bf16 */
    float *state[STATE_VECTORS]; /* NULL: none */
    const float *g;
    size_t count;
    int block;  /* whose optimizer step counts, for Adam's bias correction */
    bool decay; /* weight decay applies */
    int columns, parts, part_rows[PARAM_PARTS]; /* of a matrix of Muon, see Param; columns is 0 of
                                                   what is updated element by element */
} UpdateTensor;

/* Tensors are cut into chunks of this many elements, one block of threads each, so that one launch
 * serves a bias of ten elements as well as a matrix of millions. */
enum { UPDATE_CHUNK = 8192 };
typedef struct {
    int tensor, number; /* elements from number * UPDATE_CHUNK on */
} UpdateChunk;
/* Returns the chunks of a tensor of `count` elements. */
static inline int update_chunks(size_t count) {
    return (int)((count + UPDATE_CHUNK - 1) / UPDATE_CHUNK);
}

/* The update kernels; SGD has one without momentum and one with it. */
typedef enum {
    UPDATE_NONE,
    UPDATE_SGD,
    UPDATE_MOMENTUM,
    UPDATE_ADAM,
    UPDATE_LION,
    UPDATE_RULES
} UpdateRule;

/* What changes from step to step, besides the factors. */
typedef struct {
    double gradient_scale, norm;
    float scale; /* of the gradients: gradient_scale and clipping */
    int refused; /* the norm is not finite */
} UpdateNumbers;

/* What the kernels read and write; its arrays are device memory. */
typedef struct {
    const UpdateTensor *tensor;
    const UpdateChunk *chunk;
    UpdateNumbers *numbers;    /* one; the factors follow it in memory */
    OptimizerFactors *factors; /* [blocks][2], the second with weight decay */
    double *partial;           /* [chunks]: sums of squares */
    int chunks;
    UpdateRule rule;
    double clip_norm;
} UpdatePlan;

/* Besides the kernels, other files use only plan.chunks, plan.partial and bytes. */
typedef struct {
    UpdatePlan plan;
    OptimizerSettings settings;
    int blocks;
    UpdateTensor *matrix; /* [matrices]: those of Muon, which products update one by one */
    int matrices;
    char *memory; /* device, of `bytes` */
    size_t bytes;
    UpdateNumbers *pinned; /* page-locked: from here the numbers and factors of a step are sent */
    Event sent;            /* the device is done with it */
} Updater;

/* Says of a tensor with arrays how the optimizer updates this parameter.  The fields that follow
 * the arrays are zero before. */
void update_describe(UpdateTensor *tensor, const OptimizerSettings *settings, const Param *param);

/* Plans the update of these tensors, which are copied, and uploads the plan on the stream.  NULL
 * and an error when memory runs out, or the optimizer has no kernel. */
Updater *updater_create(const UpdateTensor *tensors, int count, int blocks,
                        const OptimizerSettings *settings, Stream stream);
void updater_free(Updater *updater); /* NULL is ignored */
/* Returns the device bytes that an updater holds for so many tensors and numbers. */
size_t updater_bytes(int tensors, int blocks, size_t numbers);

/* Puts the numbers of one step on the stream: the rate, and the optimizer steps t[b] of each block,
 * this one included.  gradient_scale multiplies the gradients, in addition to clipping.  Waits
 * until those of the last step have been sent.  Must not be called while a graph is captured. */
void update_prepare(Updater *updater, Stream stream, double lr, double gradient_scale,
                    const uint64_t *t);

/* ---- ops/update.cu ---- */

/* plan.partial[chunks] = the sum of squares of each chunk's gradient, in double and in a fixed
 * order.  A tensor's chunks follow each other, and tensors come as they were given. */
void update_squares(const Run *run, const Updater *updater);

/* Sums the squares of all gradients likewise, and computes from the sum the factor of clipping
 * (settings.clip_norm > 0) that update_apply uses.  Without this call before it, update_apply does
 * not clip.  Copies the norm to *norm, page-locked, unless that is NULL. */
void update_norm(const Run *run, const Updater *updater, double *norm);

/* Updates the parameters (the master, and its rounding to the value type) and the state.  Does
 * nothing when `sums` (NULL: none) holds a loss that is not finite, or when the norm was computed
 * and is not finite.  workspace: device memory for as many numbers as optimizer_workspace says of
 * the largest tensor, which is overwritten. */
void update_apply(const Run *run, const Updater *updater, const LossSums *sums, float *workspace);

/* ---- ops/muon.cu ---- */

/* Updates updater->matrix[...], likewise.  In bf16 and tf32 the products are of tf32. */
void update_muon(const Run *run, const Updater *updater, const LossSums *sums, float *workspace);

#ifdef __cplusplus
}
#endif
