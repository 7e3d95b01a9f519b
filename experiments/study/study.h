/* A study: a table with a row for each training, and their curves.  */
#pragma once

#include "../store/runfile.h"

typedef struct {
    char name[H5_NAME];
    /* what was trained, and how */
    char model[H5_NAME], input[H5_NAME], data[H5_NAME], optimizer[H5_NAME], method[H5_NAME],
        order[H5_NAME], switching[H5_NAME];
    int64_t submodels, parameters, batch, steps, seed, threads;
    double epochs, imbalance;
    char checksum[H5_NAME], spec[H5_PATH];
    Options settings;
    Provenance provenance;
    /* results; NAN when they do not apply or were not reached */
    double train_loss, valid_loss, accuracy, perplexity;
    double level, steps_to_converge, epochs_to_converge, multiplier;
    double valid_level, valid_steps, valid_multiplier; /* the same by validation loss */
    double plateau_steps, plateau_epochs, plateau_score, plateau_spread; /* converge.h */
    double end_score, end_spread;
    double seconds, rate;
    double peak[MEM_ROLES + 1], closed_form; /* bytes; the last peak is of all roles together */
    CurveRow *curve;
    EvaluationRow *evaluation;
    SwitchRow *switches;
    uint64_t curve_rows, evaluation_rows, switch_rows;
    double *operations; /* [curve_rows] done after each row of the curve; NULL: unknown */
} StudyRow;

typedef struct {
    int rows, capacity;
    StudyRow *row;
    Text unfinished; /* a line about runs that have not finished; "": all have */
} Study;

/* The columns of the table in the file.  Those that study_converge computes are optional there. */
extern const H5Column study_columns[];
extern const int study_column_count;

/* Appends an empty row, with NAN for all reals; invalidates pointers to other rows. */
StudyRow *study_add(Study *study);

/* Moves a row of another study, with its curves; an empty row remains there. */
void study_move(Study *study, StudyRow *row);

/* Appends the contents of a run's file as a row; takes ownership of its curves.  Returns -1 with an
 * error set. */
int study_add_run(Study *study, RunFile *run, const char *name);
void study_free(Study *study);

/* Thins the curve: a row becomes the mean loss over `updates` updates, or fewer at the end of a
 * phase, with step, rate and seconds of the last of them.  No row spans two phases. */
void study_thin(StudyRow *row, size_t updates);

/* Returns true for an image model. */
bool study_is_images(const StudyRow *row);
/* Returns the accuracy in per cent for image models, the perplexity for language models. */
double study_score(const StudyRow *row, const EvaluationRow *evaluation);

/* Returns true for BCD in three submodels on all of the data from random weights, as in Table 2.
 * Mean multipliers are over these. */
bool study_is_bcd3(const StudyRow *row);

/* "full", "offload", "BCD-1/3", or "1/3 x.9" when each submodel sees 0.9 of the data. */
Text study_method(const StudyRow *row);

/* The cost of a training, an x axis of its curve. */
typedef enum { AXIS_UPDATES, AXIS_SECONDS, AXIS_OPERATIONS } StudyAxis;
/* Returns the cost up to and including a row of the curve; NAN when unknown. */
double study_axis_value(const StudyRow *row, size_t curve_row, StudyAxis axis);

/* Returns the number of rows of the curve whose cost is less than `value`. */
size_t study_rows_before(const StudyRow *row, StudyAxis axis, double value);

/* Returns true when the seconds of two trainings may be compared: they had the same processor or
 * GPU and as many threads. */
bool study_times_comparable(const StudyRow *a, const StudyRow *b);

/* Returns true when a training has reached at each update what a training of that length would
 * have: its learning rate does not depend on its length, as with a cosine. */
bool study_may_be_cut(const StudyRow *row);

/* ---- study_file.c: the file, as experiments/results/README.md describes it ------------------- */

/* Writes its groups into a file that is being written. */
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
