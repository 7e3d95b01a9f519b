/* What an optimizer step looks like on the device: shared by update.c, which plans it, and
 * ops/update.cu, which does it. */
#ifndef CUDA_UPDATE_PLAN_H
#define CUDA_UPDATE_PLAN_H

#include "update.h"

/* Tensors are cut into chunks of this many numbers, one block of threads each, so that one launch
 * serves a bias of ten numbers as well as a matrix of millions. */
enum { UPDATE_CHUNK = 8192 };
typedef struct {
    int tensor, number; /* numbers from number * UPDATE_CHUNK on */
} UpdateChunk;

/* The update kernels; SGD has one without momentum and one with it. */
typedef enum { UPDATE_NONE, UPDATE_SGD, UPDATE_MOMENTUM, UPDATE_ADAM, UPDATE_LION } UpdateRule;

/* What changes from step to step. */
typedef struct {
    double gradient_scale, norm;
    float scale; /* of the gradients: gradient_scale and clipping */
    int refused; /* the norm is not finite */
} UpdateNumbers;

/* A plan; its arrays are device memory. */
typedef struct {
    const UpdateTensor *tensor;
    const UpdateChunk *chunk;
    UpdateNumbers *numbers;    /* one; the factors follow it in memory */
    OptimizerFactors *factors; /* [blocks][2], the second with weight decay */
    double *partial;           /* [chunks] sums of squares */
    int chunks;
    UpdateRule rule;
    double clip_norm;
} UpdatePlan;

#ifdef __cplusplus
extern "C" {
#endif
void update_launch_squares(const Run *run, const UpdatePlan *plan); /* writes partial[chunks] */
void update_launch_norm(const Run *run, const UpdatePlan *plan);
void update_launch_apply(const Run *run, const UpdatePlan *plan, const LossSums *sums);
#ifdef __cplusplus
}
#endif

#endif
