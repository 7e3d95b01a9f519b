/* `bcd experiment memory`: bytes of parameters, gradients, optimizer state and activations beside
 * the published ones (Table 8, Figure 5, the memory columns of Tables 4 and 9 to 11), and of short
 * trainings here. */
#ifndef EXPERIMENTS_MEMORY_H
#define EXPERIMENTS_MEMORY_H

#include "../../ref/memory.h"
#include "../../ref/submodel.h"
#include "../tables/table.h"

#define BYTES_GIB (1024.0 * 1024 * 1024)
#define BYTES_MIB (1024.0 * 1024)

/* Bytes of a model while the submodel that needs most trains; `all`: every role together. */
typedef struct {
    double trained; /* parameters, gradients and optimizer state: what the paper counts */
    double activations, all;
} MemorySums;

/* By the plan of ref/memory.h, cut into `submodels` balanced parts.  -1 and an error. */
int memory_sums(MemorySums *sums, const Model *model, const StageSettings *settings, int submodels);

/* One sample at a time, nothing recomputed. */
StageSettings memory_plain_settings(OptimizerKind kind);

/* Each adds a table; -1 and an error. */
int memory_add_figure5(Tables *tables);      /* memory_published.c */
int memory_add_small_models(Tables *tables); /* Tables 9 to 11 */

/* Trains small networks for a step with each submodel, fully and by BCD, and adds a table of the
 * allocator's peaks beside plan and closed form.  -1 and an error. */
int memory_measure(Tables *tables, const Options *options);

#endif
