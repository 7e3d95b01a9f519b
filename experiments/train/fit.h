/* Whether a training fits into the memory there is; if not, what would: from the plans of ref and
 * cuda, before anything is allocated. */
#ifndef EXPERIMENTS_FIT_H
#define EXPERIMENTS_FIT_H

#include "../../dist/rank_plan.h"
#include "../../ref/memory.h"
#include "../../ref/submodel.h"

/* Bytes by role of a stage, in the memory it computes in and in host memory next to it; as
 * memory_plan.
 */
typedef int (*FitPlan)(size_t device[MEM_ROLES], size_t host[MEM_ROLES], const Model *model,
                       const StageSettings *settings, const bool *active);

typedef struct {
    FitPlan plan;
    const char *name;  /* "this machine", "NVIDIA H200" */
    double bytes;      /* of memory to compute in, free for us */
    double host_bytes; /* of host memory next to it; 0: it is the same memory */
    bool bf16;         /* it computes in bf16, too */
    size_t cache;      /* wanted for the prefix cache in it */
} FitMemory;

/* What is to be trained. */
typedef struct {
    const Model *model;
    const Partition *partition;
    const char *always; /* blocks in no submodel, as partition_balanced takes them; or NULL */
    StageSettings settings;
    int batch, accumulate; /* a batch is computed in so many parts */
    /* Of one rank of a pipeline, else NULL: settings.local and .slots are those of `blocks`. */
    RankBlocks *blocks;
    const Placement *placement;
    PipelineSettings pipeline;
} FitTraining;

/* The largest plan over the submodels: of each role, and last of all together, which is less than
 * their sum where no submodel needs most of each.  Kept state counts as of all of them.  host: the
 * same of host memory.  -1 and an error when memory runs out. */
int fit_plan(size_t device[MEM_ROLES + 1], size_t host[MEM_ROLES + 1], FitPlan plan,
             const FitTraining *training);

/* 0 if it fits.  Else -1 and an error with the bytes by role, and the fewest changes (submodels,
 * recompute, accumulate, bf16) with which it would. */
int fit_check(const FitMemory *memory, const FitTraining *training);

/* As FitPlan, of the CPU stage: nothing next to it. */
int fit_plan_cpu(size_t device[MEM_ROLES], size_t host[MEM_ROLES], const Model *model,
                 const StageSettings *settings, const bool *active);

#endif
