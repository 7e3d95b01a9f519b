/* --pipeline: a training over several ranks.  The process of rank 0 does all that a training on one
 * device does; the others only follow (coordinator.h), and are told by it what to train. */
#ifndef EXPERIMENTS_PIPELINE_H
#define EXPERIMENTS_PIPELINE_H

#include "setup.h"

/* Joins the processes that were started together: *world is the link between them, NULL where there
 * is but one.  -1 and an error: launched without the names, a rank that does not come ... */
int pipeline_join(Link **world, const Options *options);

/* For ranks above 0: follows until the training is over.  Takes over the link.  0; -1 and an error,
 * which is empty when another rank has told the same already. */
int pipeline_follow(Link *world, const Options *options);

/* Tells the ranks that wait to follow that there will be nothing, and why; frees the link. */
void pipeline_give_up(Link *world, const char *why);

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

/* ---- between pipeline.c and pipeline_engine.c -------------------------------------------------
 */

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
