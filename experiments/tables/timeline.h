/* The timeline of a pipeline step as a table: a row for each task, ordered by rank and start.  The
 * page draws it; as text there are only its title and notes. */
#ifndef EXPERIMENTS_TIMELINE_H
#define EXPERIMENTS_TIMELINE_H

#include "../../dist/simulate.h"
#include "table.h"

enum { TASK_WHAT, TASK_CHUNK, TASK_MICRO_BATCH, TASK_START, TASK_END, TASK_COLUMNS };

/* Adds the simulated timeline of a step with one submodel active. */
void timeline_add(Tables *tables, const char *name, const char *title,
                  const Configuration *configuration, int submodel);

#endif
