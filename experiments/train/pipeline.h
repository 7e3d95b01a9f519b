/* --pipeline: a training over several ranks.  The process of rank 0 does all that a training on one
 * device does; the others are its workers (coordinator.h), and get what to train from it. */
#ifndef EXPERIMENTS_PIPELINE_H
#define EXPERIMENTS_PIPELINE_H

#include "setup.h"

/* Joins the processes that were started together: *world is the transport between them, NULL where
 * there is but one.  -1 and an error: launched without the names, a rank that does not come ... */
int pipeline_join(Transport **world, const Options *options);

/* For ranks above 0: works until the training is over.  Takes over the transport.  0; -1 and an
 * error, which is empty when another rank has reported the same already. */
int pipeline_worker(Transport *world, const Options *options);

/* Tells the workers, which wait, that there will be nothing, and why; frees the transport. */
void pipeline_abort(Transport *world, const char *why);

/* Which rank holds what, from the options and the partition of an opened setup; Figure 2 makes the
 * partition, too.  Nothing without --pipeline. */
int pipeline_place(Setup *setup);

/* setup->engine over all ranks. */
int pipeline_engine(Setup *setup, const char *cache_dir);

/* fit_plan of one rank. */
int pipeline_memory(size_t device[MEM_ROLES + 1], size_t host[MEM_ROLES + 1], const Setup *setup,
                    FitPlan plan, int rank);

/* "4 ranks (threads), virtual stages, 1f1b, 8 parts: ..." */
const char *pipeline_describe(char text[160], const Setup *setup);

/* Whether the GPUs of a pipeline are joined by NCCL, which needs memory of theirs. */
bool pipeline_is_nccl(const Options *options);

/* ---- between pipeline.c and pipeline_engine.c ------------------------------------------------ */

typedef enum {
    PIPELINE_NONE,
    PIPELINE_LOCAL,
    PIPELINE_MPI,
    PIPELINE_NCCL,
    PIPELINE_KINDS
} PipelineKind;

/* "local:4": the kind and 4; 0 ranks for other kinds.  -1 and an error. */
int pipeline_parse(PipelineKind *kind, int *ranks, const char *text);

#endif
