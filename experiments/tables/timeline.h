/* The timeline of a pipeline step as a table: a row for each task, ordered by rank and start.  It
 * is printed as a line of letters for each rank; the page draws it. */
#ifndef EXPERIMENTS_TIMELINE_H
#define EXPERIMENTS_TIMELINE_H

#include "../../dist/simulate.h"
#include "table.h"

enum { TASK_WHAT, TASK_CHUNK, TASK_MICRO_BATCH, TASK_START, TASK_END, TASK_COLUMNS };

/* Adds the simulated timeline of a step with one submodel active. */
void timeline_add(Tables *tables, const char *name, const char *title,
                  const Configuration *configuration, int submodel);

/* Returns true for a table with the columns and values of a timeline; a file may claim any. */
bool timeline_is(const Table *table);
/* Returns the end of the last task in milliseconds. */
double timeline_end_ms(const Table *table);

/* Prints the title, a line of at most 98 characters for each rank, and the notes. */
void timeline_print(FILE *out, const Table *table);

#endif
