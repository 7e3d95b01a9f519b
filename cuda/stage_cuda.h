/* The CUDA stage: implements ref/stage.h on a device.  It computes block by block what the CPU's
 * stage (ref/stage_ref.c) computes, in fp32, tf32 or bf16.
 *
 *   stage_cuda.c     creates and frees the stage; the table of its functions
 *   plan.h           how many bytes a submodel needs;  addresses.c  where each array lies
 *   stage_memory.c   allocates a submodel's memory, its optimizer state and float masters
 *   transfer.c       copies tensors to and from the host
 *   batch.c          copies a micro-batch to the device
 *   pass.c, fuse.h   run forward and backward over a block, some neighbouring nodes in one launch
 *   step.c           captures a whole step as a CUDA graph and repeats it
 *   offload.c        the baseline: keeps optimizer state and runs the update in host memory
 *   times.c          device times
 *   boundary.c       copies outputs of blocks to and from the prefix cache, and messages of a
 *                    pipeline (message.h)
 */
#pragma once

#include "../ref/stage.h"

/* Opens the device and creates a stage for the whole model, or for the blocks settings.local names,
 * with parameters initialised from the seed as on the CPU.  StageClass.memory counts device memory
 * only.  Returns NULL, with an error, when there is no device or not enough memory. */
Stage *stage_cuda_create(const Model *model, StageSettings settings);

/* Switches for tests and measurements, both on by default: whether neighbouring nodes run in one
 * launch, and whether steps are captured as graphs. */
typedef struct {
    bool fuse, graphs;
} StageTuning;
void stage_cuda_tune(Stage *stage, StageTuning tuning);
