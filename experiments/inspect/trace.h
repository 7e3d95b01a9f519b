/* What one training step costs, block by block, how it is shown, and what is written of it. */
#ifndef EXPERIMENTS_TRACE_H
#define EXPERIMENTS_TRACE_H

#include "../../ref/memory.h"
#include "../train/setup.h"

/* One step with every block active (submodel -1), or one submodel. */
typedef struct {
    int submodel;
    bool *active;       /* [blocks] */
    BlockTimes *times;  /* [blocks] the shortest of a few steps */
    BlockMemory *bytes; /* [blocks] */
    BlockTimes sum;     /* over the blocks */
    BlockMemory total;
    double passes_ms, update_ms; /* all of forward and backward; the optimizer */
    double flops;                /* operations of one sample, from the shapes */
    double all_bytes;            /* as the allocator counts, of every role */
} Trace;

int trace_lowest_active(const Model *model, const bool *active);
/* What a block is: "active"; "frozen", above an active one; "prefix", below all of them. */
const char *trace_part(const Model *model, const Trace *trace, int block);

/* Block by block, next to the full update. */
void trace_print(const Setup *setup, const Trace *trace, const Trace *full);
/* The full update, traces[0], and the submodels side by side. */
void trace_print_summary(const Trace *traces, int count);

/* Writes them to the files asked for: --out, tables (tables/table.h) `full`, `submodel_1` ...;
 * --figure, a drawing of them.  -1 and an error. */
int trace_write(const Setup *setup, const Trace *traces, int count);

#endif
