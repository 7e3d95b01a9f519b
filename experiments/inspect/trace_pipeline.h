/* The step of a pipeline, measured and simulated, for `bcd trace --pipeline`. */
#pragma once

#include "../cli/command_line.h"
#include "../tables/table.h"
#include "bench.h"

/* Returns how many steps are timed: one before them to warm up, or two, which fill a cache and the
 * pipeline; up to --steps, fewer if they take long. */
BenchPace trace_pace(const TraceFlags *flags, bool twice);

/* Refuses a pipeline that is not one of threads.  Returns 0; on failure -1, with the error set. */
int trace_pipeline_check(const Options *options);

/* Times a step of each submodel in a pipeline of threads, which is open, simulates it from
 * block[submodels][blocks], the costs of a micro-batch on one stage with as many threads as a rank
 * has, and adds a table of both.  Returns 0; on failure -1, with the error set. */
int trace_pipeline(Tables *tables, Bench *pipeline, const BlockCost *block,
                   const TraceFlags *flags);
