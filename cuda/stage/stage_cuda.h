/* The CUDA stage: implements ref/stage.h and ref/stage_device.h on a device.  It computes
 * block by block what the CPU's stage (ref/stage_ref.c) computes, in fp32, tf32 or bf16.
 * stage_internal.h lists its files. */
#pragma once

#include "../../ref/stage_device.h"

/* Opens the device and creates a stage for the whole model, or for the blocks settings.local names,
 * with parameters initialised from the seed as on the CPU.  Stage.memory counts device memory
 * only.  The model, settings.local and settings.in_flight must outlive the stage.  NULL and an
 * error when there is no device or not enough memory, for an unknown optimizer, offload with
 * `local`, or correct_factor > 0. */
Stage *stage_cuda_create(const Model *model, StageSettings settings);

/* Switches for tests and measurements, both on by default: whether neighbouring nodes run in one
 * launch, and whether steps are captured as graphs. */
typedef struct {
    bool fuse, graphs;
} StageTuning;
void stage_cuda_tune(Stage *stage, StageTuning tuning);
