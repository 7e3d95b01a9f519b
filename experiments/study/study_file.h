/* A study as an HDF5 file:
 *
 *   /            attributes  format "bcd study", version 2, convergence: the rule, in words
 *   /table       one data set per column of study_columns, [rows]; `row` (names) is their dimension
 *                scale; attributes unit and what
 *   /training    as /curve of run.h5, one row per update: of all trainings, one behind the other
 *   /evaluation  as /evaluation of run.h5, likewise
 *   /switches    as /switches of run.h5, likewise
 *   /curves      training_first, training_rows: where those of a training begin, and how many;
 *                evaluation_first ... switches_rows; spec: of the model [rows]
 *   /settings    one data set per flag of `bcd train` [rows]
 *   /provenance  as in run.h5, one data set per field [rows] */
#ifndef EXPERIMENTS_STUDY_FILE_H
#define EXPERIMENTS_STUDY_FILE_H

#include "study.h"

/* What of that are groups, into a file that is being written. */
void study_store(H5File *file, const Study *study);
/* Writes the file whole, or leaves the old one as it was.  -1 and an error. */
int study_write(const Study *study, const char *path);

/* Appends the rows of a file: a study's, or a run.h5 as one row named after its directory.  -1 and
 * an error: neither of the two, damaged, a column missing.  A setting that is missing and has a
 * default takes it, and `lacking` says so. */
int study_read(Study *study, const char *path);

/* Whether a row that was read can be a training: losses that are numbers, updates in order.  -1 and
 * an error that names the file. */
int study_check(const StudyRow *row, const char *path);

#endif
