/* The passes of a pipeline step as a table: a row for each task, rank after rank, each in the order
 * of time; drawn, and printed as a line of letters for each rank. */
#ifndef EXPERIMENTS_TIMELINE_H
#define EXPERIMENTS_TIMELINE_H

#include "../../dist/simulate.h"
#include "table.h"

enum { TASK_WHAT, TASK_CHUNK, TASK_MICRO_BATCH, TASK_START, TASK_END, TASK_COLUMNS };

/* Adds the passes of one submodel, simulated. */
void timeline_add(Tables *tables, const char *name, const char *title,
                  const Configuration *configuration, int submodel);

/* Whether a table is one: a file may say so of any. */
bool timeline_is(const Table *table);
/* When the last task ends, in milliseconds. */
double timeline_end_ms(const Table *table);

/* The title, a line of at most 98 columns for each rank, the notes. */
void timeline_print(FILE *out, const Table *table);

#endif
