/* The CUDA stage: ref/stage.h on a device.  The same semantics block by block as the CPU's
 * (ref/stage_ref.c), in fp32, tf32 or bf16.
 *
 *   stage_cuda.c     life, and the table of calls
 *   plan.h           what a submodel takes, in numbers;  addresses.c  where each array lies
 *   stage_memory.c   what a submodel allocates, its optimizer state and float masters
 *   transfer.c       tensors to and from the host
 *   batch.c          a micro-batch on its way to the device
 *   pass.c, fuse.h   forward and backward over a block, neighbouring nodes in one launch
 *   step.c           a whole step as one CUDA graph
 *   offload.c        the baseline: optimizer state and update in host memory
 *   cache.c times.c  the prefix cache, device times
 *   handover.c       boundary values of a pipeline, as messages of the device (message.h)
 */
#ifndef CUDA_STAGE_CUDA_H
#define CUDA_STAGE_CUDA_H

#include "../ref/stage.h"

/* The whole model, or what settings.local says, parameters initialised from the seed as on the CPU;
 * opens the device.  NULL and
 * an error: no device, or no memory.  Counts device memory only (StageClass.memory). */
Stage *stage_cuda_create(const Model *model, StageSettings settings);

/* What tests and measurements switch, on by default: neighbouring nodes in one launch, and steps
 * recorded as graphs. */
typedef struct {
    bool fuse, graphs;
} StageTuning;
void stage_cuda_tune(Stage *stage, StageTuning tuning);

#endif
