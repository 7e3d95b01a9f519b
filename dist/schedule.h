/* Who does what, in which order, when a model is trained over several ranks.  Pure: from sizes and
 * costs to lists of operations; the pipeline executes them, the simulator times them, the tests
 * check them for every small size.
 *
 * A model is cut in depth into chunks; each lives on one rank.  Rank r of p holds chunk r alone
 * (plain), or every p-th chunk r, r + p, r + 2p ... (virtual stages).  A micro-batch goes up
 * through the chunks (forward), and down again as far as the lowest chunk with an active parameter
 * (input gradients); chunks with active parameters also compute weight gradients.
 *
 *   plain, full update, p = 2, m = 3:       rank 0   F0 F1 B0 F2 B1 B2      (B: input and weight
 *                                           rank 1      F0 B0 F1 B1 F2 B2    gradient together)
 */
#ifndef DIST_SCHEDULE_H
#define DIST_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>

typedef enum {
    SCHEDULE_1F1B,        /* a weight gradient directly follows its input gradient */
    SCHEDULE_ZERO_BUBBLE, /* weight gradients wait and fill the gaps (Qi et al. 2023) */
    SCHEDULE_KINDS
} ScheduleKind;
extern const char *const schedule_names[SCHEDULE_KINDS];

typedef struct {
    double forward, input_gradient, weight_gradient; /* of one micro-batch, in any unit of time */
} ChunkCost;

typedef struct {
    ScheduleKind kind;
    int ranks, chunks, micro_batches;
    const int *rank_of; /* [chunks] */
    int first;          /* the lowest chunk that runs forward: those below are cached */
    int lowest;         /* the lowest chunk that runs backward; chunks: none */
    const bool *trains; /* [chunks]: has weight gradients */
    const ChunkCost *cost;
    const double *transfer; /* [chunks - 1]: time of a message between chunk c and c + 1, where they
                             * are on two ranks; NULL: none */
    int slack;              /* micro-batches in flight beyond the bound of schedule_bound */
} SchedulePlan;

typedef enum {
    DO_RECEIVE_VALUE,    /* the input of this chunk */
    DO_FORWARD,          /* of the last chunk: with the loss, and its backward pass comes next */
    DO_SEND_VALUE,       /* the output of this chunk */
    DO_RECEIVE_GRADIENT, /* of this chunk's output */
    DO_INPUT_GRADIENT,   /* also where it is only the way to a weight gradient */
    DO_SEND_GRADIENT,    /* of this chunk's input */
    DO_WEIGHT_GRADIENT
} Doing;

/* start and end say when, under the plan's costs: the timeline of the step.  A message starts when
 * it is sent and ends when it is there; meanwhile both its ranks go on working. */
typedef struct {
    Doing what;
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
    double time; /* of the whole, under the plan's costs */
} Schedule;

/* The lists.  -1 and an error when memory runs out or the plan is impossible. */
int schedule_make(Schedule *schedule, const SchedulePlan *plan);
void schedule_free(Schedule *schedule);

/* The most micro-batches chunk `chunk` holds at once, from the start of their forward pass to the
 * end of their last gradient: with v chunks per rank ceil((chunks - chunk) / v), one more if v > 1,
 * and slack, which is the bound of 1F1B where v = 1; for zero bubble that of chunk 0.  A chunk
 * without a backward pass keeps nothing; there this is how many outputs wait for the chunk above.
 */
int schedule_bound(const SchedulePlan *plan, int chunk);

#endif
