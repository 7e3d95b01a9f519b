/* A study as an HDF5 file:
 *
 *   /            attributes  format "bcd study", version 2, convergence (study_convergence_rule)
 *   /table       one data set per column of study_columns, [rows]; `row` (names) is their dimension
 *                scale; attributes unit and what
 *   /training    /curve of run.h5, the rows of all trainings concatenated
 *   /evaluation  /evaluation of run.h5, likewise
 *   /switches    /switches of run.h5, likewise
 *   /curves      training_first, training_rows [rows]: the range of a training in /training;
 *                evaluation_first ... switches_rows; spec: of the model
 *   /settings    one data set per flag of `bcd train` [rows]
 *   /provenance  as in run.h5, one data set per field [rows] */
#ifndef EXPERIMENTS_STUDY_FILE_H
#define EXPERIMENTS_STUDY_FILE_H

#include "study.h"

/* Writes the groups of that into a file that is being written. */
void study_store(H5File *file, const Study *study);
/* Writes the whole file, or leaves the old one as it was and returns -1 with an error set. */
int study_write(const Study *study, const char *path);

/* Appends the rows of a study's file, or a run.h5 as one row named after its directory.  A setting
 * that is missing takes its default.  Returns -1 with an error set when the file is of another kind
 * or damaged, or when a column is missing. */
int study_read(Study *study, const char *path);

/* Checks that a row that was read can be a training: its losses are finite and its updates in
 * order. Returns -1 with an error set that names the file. */
int study_check(const StudyRow *row, const char *path);

#endif
