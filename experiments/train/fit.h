/* Whether a training fits into memory and, if it does not, which flags would make it fit.  Computed
 * from the memory plans of ref/memory.h and cuda/stage/plan.h, before anything is allocated. */
#pragma once

#include "setup.h"

/* Bytes by role, in the memory that computes, and in host memory next to it; the last element is
 * the total. */
typedef struct {
    size_t device[MEM_ROLES + 1], host[MEM_ROLES + 1];
} FitBytes;

/* Adds the bytes of one of the two memories. */
static inline void fit_add(size_t sum[MEM_ROLES + 1], const size_t bytes[MEM_ROLES + 1]) {
    for (int role = 0; role <= MEM_ROLES; role++) sum[role] += bytes[role];
}

/* Overwrites `bytes` with the largest plan over the submodels that the training comes to, of a
 * training on one device or of a rank of its pipeline.  Each role has its own largest, and so has
 * the total, which is therefore less than their sum where no submodel needs the most of each.  Kept
 * optimizer state is that of all blocks that have trained.  Where losses or gradients decide which
 * submodels have a turn, it is the most that can come.  Needs the setup's options, device,
 * model, settings of BCD with the partition, stage settings and, with ranks, placement and
 * pipeline; and the training data where those settings have updates.  -1 and an error. */
int fit_plan(FitBytes *bytes, const Setup *setup, int rank);

/* Returns what messages between devices take of a rank's device beside that, with --pipeline nccl
 * or local:N.  0 with mpi and without a device: the copies in host memory that these send are not
 * counted. */
size_t fit_message_bytes(const Setup *setup, int rank);

/* The same as fit_plan of all ranks together. */
int fit_plan_all(FitBytes *bytes, const Setup *setup);

/* Overwrites *bytes with what a model needs that only computes losses or, if the setup generates,
 * answers.  Needs the setup's options, device, model and stage settings.  -1 and an error. */
int fit_plan_evaluation(FitBytes *bytes, const Setup *setup);

/* What a training on one device may choose to need more or less memory. */
typedef struct {
    int submodels, accumulate;
    bool recompute;
    Precision precision;
    OptimizerKind optimizer;
} FitChoice;

/* What a setup has chosen. */
FitChoice fit_choice(const Setup *setup);

/* Overwrites *bytes with what fit_plan would say of the same training with another choice.  -1 and
 * an error: the model cannot be cut so. */
int fit_plan_choice(FitBytes *bytes, const Setup *setup, const FitChoice *choice);

/* "parameters 5.8 GiB, gradients 5.8 GiB, ...": the roles that take half a percent or more. */
Text fit_list_roles(const size_t roles[MEM_ROLES + 1]);

typedef struct {
    const char *name;  /* "this machine", "NVIDIA H200" */
    double bytes;      /* memory to compute in that a training may use */
    double host_bytes; /* host memory next to it; 0: the two are the same memory */
    bool bf16;         /* whether it can compute in bf16 */
} FitMemory;

/* Returns 0 if the training fits, on one device or over its ranks.  Otherwise -1 and an error; on
 * one device that has the bytes by role, and the first changes (accumulate, recompute, more
 * submodels, bf16, in this order) with which it would fit.  With pre-inference the first ranks
 * infer, up to one that has no room for the frozen prefix: lowers pipeline.infer_ranks. */
int fit_check(const FitMemory *memory, Setup *setup);

/* Returns the most that a --cache will take in host memory: no more than the samples have outputs
 * of the longest frozen prefix.  With replicas a rank of each has such a cache. */
size_t fit_cache_bytes(const Setup *setup);
/* Returns what a batch of such outputs takes in host memory beside them, on its way to and from the
 * cache, which may be the device's: a micro-batch, or over ranks the whole batch. */
size_t fit_cache_batch_bytes(const Setup *setup);
/* Returns what a rank that infers the prefix has of such outputs in host memory, before they go to
 * the rank of the cache: its replica's part of the batch.  It is in no plan, and not measured. */
size_t fit_inferred_bytes(const Setup *setup, int rank);

/* Refuses a training that does not fit here, on one device or over ranks.  Linux hands out memory
 * only when it is touched, so a model that is too large would not be refused later but killed.  -1
 * and an error. */
int fit_check_here(Setup *setup);

/* The same of a model that is only evaluated. */
int fit_check_evaluation_here(const Setup *setup);
