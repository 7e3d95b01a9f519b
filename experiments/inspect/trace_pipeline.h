/* The step of a pipeline, measured and simulated, for `bcd trace --pipeline`. */
#pragma once

#include "../tables/table.h"
#include "../train/bench.h"

/* Refuses a pipeline that is not one of threads.  Returns 0; on failure -1, with the error set. */
int trace_pipeline_check(const Options *options);

/* Times a step of each submodel in a pipeline of threads, which is open, simulates it from
 * block[submodels][blocks], the costs of a micro-batch on one stage with as many threads as a rank
 * has, and adds a table of both.  Returns 0; on failure -1, with the error set. */
int trace_pipeline(Tables *tables, Bench *pipeline, const BlockCost *block);
