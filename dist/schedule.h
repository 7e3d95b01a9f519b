/* Pipeline schedules: for each rank, the list of tasks of one training step, in order.  A schedule
 * is computed from sizes and costs alone.  The pipeline executes it, the simulator takes its times,
 * and the tests check it for every small size.
 *
 * A model is cut in depth into chunks, and each chunk is on one rank.  Rank r of p has chunk r
 * (plain), or every p-th chunk r, r + p, r + 2p ... (virtual stages).  A micro-batch goes up
 * through the chunks (forward), and down again to the lowest chunk with an active parameter (input
 * gradients); chunks with active parameters also compute weight gradients.
 *
 *   plain, full update, p = 2, m = 3:       rank 0   F0 F1 B0 F2 B1 B2      (B: input and weight
 *                                           rank 1      F0 B0 F1 B1 F2 B2    gradient together)
 */
#pragma once

#include "../ref/model.h"

typedef enum {
    SCHEDULE_1F1B,        /* a weight gradient directly follows its input gradient */
    SCHEDULE_ZERO_BUBBLE, /* weight gradients are delayed and fill the gaps (Qi et al. 2023) */
    SCHEDULE_KINDS
} ScheduleKind;
extern const char *const schedule_names[SCHEDULE_KINDS];

/* Of one micro-batch, in any unit of time.  A chunk computes weight gradients if they cost more
 * than 0. */
typedef struct {
    double pass[PASSES];
} ChunkCost;

typedef struct {
    ScheduleKind kind;
    int ranks, chunks, micro_batches; /* each >= 1; a rank without a chunk has no tasks */
    const int *rank_of;               /* [chunks] */
    int first;             /* the lowest chunk that runs forward; the outputs below it are cached */
    int lowest;            /* >= first: the lowest that runs backward; `chunks` if none does */
    const ChunkCost *cost; /* [chunks] */
    const double *transfer; /* [chunks - 1]: the time of a message between chunks c and c + 1, if
                             * they are on different ranks; NULL: messages take no time */
    int slack; /* micro-batches that a chunk may hold beyond those its schedule needs */
} SchedulePlan;

typedef enum {
    TASK_RECEIVE_VALUE,    /* the input of this chunk */
    TASK_FORWARD,          /* on the last chunk with the loss; its input gradient comes next */
    TASK_SEND_VALUE,       /* the output of this chunk */
    TASK_RECEIVE_GRADIENT, /* of this chunk's output */
    TASK_INPUT_GRADIENT,   /* also on the lowest chunk, whose weight gradients need it */
    TASK_SEND_GRADIENT,    /* of this chunk's input */
    TASK_WEIGHT_GRADIENT
} TaskKind;

/* start and end are the times of the task under the plan's costs.  A message starts when it is sent
 * and ends when it arrives; both ranks keep working meanwhile. */
typedef struct {
    TaskKind kind;
    int chunk, micro_batch;
    double start, end;
} Task;

typedef struct {
    Task *task;
    int tasks;
} TaskList;

typedef struct {
    TaskList *rank; /* [ranks] */
    int ranks;
    int lowest;  /* as in the plan */
    double time; /* of the whole step, under the plan's costs */
} Schedule;

/* Makes the lists, for schedule_free to free.  -1 and an error when memory runs out. */
int schedule_make(Schedule *schedule, const SchedulePlan *plan);
void schedule_free(Schedule *schedule);

/* Returns the maximum number of micro-batches that a chunk holds at once, from the start of their
 * forward pass to the end of their last gradient.  With v chunks per rank that is ceil((chunks -
 * chunk) / v), plus 1 if v > 1, plus slack; for v = 1 this is the bound of 1F1B.  With zero bubble
 * every chunk has the bound of chunk 0.  A chunk without a backward pass keeps nothing; for it this
 * is the number of outputs that wait for the chunk above in the simulation that makes the lists.
 * Where the times are others, a rank may be further ahead of a slow one, by all micro-batches: only
 * gradients make it wait. */
int schedule_bound(const SchedulePlan *plan, int chunk);
