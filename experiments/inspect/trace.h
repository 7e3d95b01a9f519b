/* What a training step costs, block by block: times and bytes, printed and written to files. */
#ifndef EXPERIMENTS_TRACE_H
#define EXPERIMENTS_TRACE_H

#include "../train/setup.h"

/* What a block, or a whole step, costs: times in ms, memory in bytes. */
typedef enum {
    COST_FORWARD,
    COST_INPUT_GRADIENT,
    COST_WEIGHT_GRADIENT,
    COST_PARAMETERS, /* the first in bytes */
    COST_ACTIVATIONS,
    COST_GRADIENTS,
    COST_STATE,
    COSTS
} CostKind;

/* A step with one submodel active, or with every block (submodel -1). */
typedef struct {
    int submodel;
    bool *active;                /* [blocks] */
    double (*cost)[COSTS];       /* [blocks] times are the shortest of a few steps */
    double total[COSTS];         /* over the blocks */
    double passes_ms, update_ms; /* all of forward and backward; the optimizer */
    double flops;                /* operations of one sample, from the shapes */
    double all_bytes;            /* of every role, as the allocator counts */
} Trace;

/* Returns "active", "frozen" (above an active block) or "prefix" (below all of them). */
const char *trace_part(const Model *model, const Trace *trace, int block);

/* Prints a step block by block, next to the full update. */
void trace_print(const Setup *setup, const Trace *trace, const Trace *full);
/* Prints the full update, traces[0], and the submodels in one table. */
void trace_print_summary(const Trace *traces, int count);

/* Writes --out, with the tables `full`, `submodel_1` ..., and --figure, a drawing of them.  -1 and
 * an error. */
int trace_write(const Setup *setup, const Trace *traces, int count);

#endif
