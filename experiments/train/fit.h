/* Whether a training fits into memory and, if it does not, which flags would make it fit.  Computed
 * from the memory plans of ref/memory.h and cuda/plan.h, before anything is allocated. */
#pragma once

#include "../../dist/rank_plan.h"
#include "../../ref/memory.h"
#include "../../ref/partition.h"

/* Overwrites the bytes by role of a stage that trains active[blocks]: in the memory it computes in
 * (as memory_plan does), and in host memory next to it.  -1 and an error. */
typedef int (*FitPlan)(size_t device[MEM_ROLES], size_t host[MEM_ROLES], const Model *model,
                       const StageSettings *settings, const bool *active);

/* The FitPlan of the CPU stage, which has no host memory next to it. */
int fit_plan_cpu(size_t device[MEM_ROLES], size_t host[MEM_ROLES], const Model *model,
                 const StageSettings *settings, const bool *active);

typedef struct {
    FitPlan plan;
    const char *name;  /* "this machine", "NVIDIA H200" */
    double bytes;      /* free memory to compute in */
    double host_bytes; /* host memory next to it; 0: the two are the same memory */
    bool bf16;         /* whether it can compute in bf16 */
    size_t cache;      /* bytes of it that a prefix cache is to have */
} FitMemory;

typedef struct {
    const Model *model;
    const Partition *partition;
    const char *always; /* blocks in no submodel, as partition_balanced takes them; or NULL */
    StageSettings settings;
    int batch, accumulate; /* samples of a batch, and in how many parts it is computed */
    /* One rank of a pipeline: settings.local and settings.in_flight are those of `blocks`.
     * NULL: the whole model. */
    RankBlocks *blocks;
    const Placement *placement;
    PipelineSettings pipeline;
} FitTraining;

/* Bytes by role; the last element is the total. */
typedef struct {
    size_t device[MEM_ROLES + 1], host[MEM_ROLES + 1];
} FitBytes;

/* Overwrites `bytes` with the largest plan over the submodels.  Each role has its own largest, and
 * so has the total, which is therefore less than their sum where no submodel needs the most of
 * each.  Kept optimizer state is counted for all submodels together.  -1 and an error. */
int fit_plan(FitBytes *bytes, FitPlan plan, const FitTraining *training);

/* Returns 0 if the training fits.  Otherwise -1 and an error with the bytes by role, and the first
 * changes (more submodels, recompute, accumulate, bf16, in this order) with which it would. */
int fit_check(const FitMemory *memory, const FitTraining *training);
