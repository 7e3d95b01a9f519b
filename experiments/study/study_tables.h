/* The trainings of a study as tables, each published cell with ours. */
#ifndef EXPERIMENTS_STUDY_TABLES_H
#define EXPERIMENTS_STUDY_TABLES_H

#include "../tables/table.h"
#include "study.h"

/* Appends the tables that the rows of a study have something for; none from a study without rows.
 * study_converge has been called, and study_operations for each row.  -1 and an error. */
int study_tables(Tables *tables, const Study *study);

#endif
