/* A study: a table with one row per training, and the curves of each.  In memory here; as an HDF5
 * file:
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
#ifndef EXPERIMENTS_STUDY_H
#define EXPERIMENTS_STUDY_H

#include "../store/runfile.h"

typedef struct {
    char name[H5_NAME];
    /* what was trained, and how */
    char model[H5_NAME], input[H5_NAME], data[H5_NAME], optimizer[H5_NAME], method[H5_NAME],
        order[H5_NAME], switching[H5_NAME];
    int64_t submodels, parameters, batch, steps, seed, threads;
    double lr, weight_decay, fraction, epochs, imbalance;
    char device[H5_NAME], cpu[H5_NAME], precision[H5_NAME], checksum[H5_NAME], commit[H5_NAME],
        started[H5_NAME];
    char spec[320];
    Options settings;
    Provenance provenance; /* in full; what is above is in the table too */
    /* what came out; NAN where it does not apply or was not reached */
    double train_loss, valid_loss, accuracy, perplexity;
    double level, steps_to_converge, epochs_to_converge, multiplier;
    double valid_level, valid_steps, valid_multiplier; /* the same by the validation loss */
    double plateau_steps, plateau_epochs, plateau_score, plateau_spread; /* plateau.h */
    double end_score, end_spread;
    double seconds, wall, rate;
    double peak[MEM_ROLES + 1], closed_form; /* the last peak is that of all roles together */
    CurveRow *curve;
    EvaluationRow *evaluation;
    SwitchRow *switches;
    size_t curve_rows, evaluation_rows, switch_rows;
    double *operations; /* [curve_rows] done after each update: operations.h; NULL: unknown */
} StudyRow;

typedef struct {
    int rows, room;
    StudyRow *row;
    char lacking[400];    /* what a file read does not say, in a line; "": they say all */
    char unfinished[400]; /* which runs read have not come to their end, in a line; "": none */
} Study;

typedef struct {
    H5Column column;
    const char *what;
    bool computed; /* from the curves, by study_converge: a file need not have it */
} StudyColumn;

extern const StudyColumn study_columns[];
extern const int study_column_count;

/* Appends an empty row, reals NAN; NULL and an error when memory runs out.  Earlier row pointers
 * become invalid. */
StudyRow *study_add(Study *study);

/* Appends what a run's file says, under a name; takes the curves over.  -1 and an error. */
int study_add_run(Study *study, RunFile *run, const char *name);
void study_free(Study *study);

/* Writes the file whole, or leaves the old one as it was.  -1 and an error. */
int study_write(const Study *study, const char *path);

/* Appends the rows of a file: a study's, or a run.h5 as one row named after its directory.  -1 and
 * an error: neither of the two, damaged, a column missing.  A setting that is missing and has a
 * default takes it, and `lacking` says so. */
int study_read(Study *study, const char *path);

/* Makes a row of the curve a mean over so many updates, fewer where a phase ends: its step, rate
 * and seconds are those of the last of them, so that nothing but the losses between is lost.  No
 * row spans two phases. */
void study_thin(StudyRow *row, size_t updates);

/* Image models are judged by accuracy, language models by perplexity. */
bool study_is_images(const StudyRow *row);

/* BCD in three submodels on all of the data, from random weights, as in Table 2: what enters a mean
 * multiplier. */
bool study_is_third(const StudyRow *row);

/* "full", "offload", "BCD-1/3", or "1/3 x.9" where each submodel sees 0.9 of the data. */
const char *study_method(const StudyRow *row, char text[32]);

/* What a training is measured by: updates, seconds, operations. */
typedef enum { AXIS_UPDATES, AXIS_SECONDS, AXIS_OPERATIONS, AXES } StudyAxis;
/* How far it was after the update of a row of its curve; NAN where that is unknown. */
double study_at(const StudyRow *row, size_t curve_row, StudyAxis axis);

/* Whether the seconds of two trainings may be compared: same processor or GPU, as many threads. */
bool study_same_clock(const StudyRow *a, const StudyRow *b);

/* Whether a row that was read can be a training: numbers that are, updates in order.  -1 and an
 * error that names the file.  In study_check.c. */
int study_check(const StudyRow *row, const char *path);

/* ---- converge.c ------------------------------------------------------------------------------ */

/* The smoothed loss after each update: the mean over the last `window` ones, fewer at the start. */
void study_smooth(double *smooth, const CurveRow *curve, size_t rows, size_t window);

/* The window that two trainings are compared with: a fortieth of the shorter, at least ten updates
 * (or all there are). */
size_t study_window(const StudyRow *a, const StudyRow *b);

/* The mean loss of the last `window` of the first `end` updates; NAN if there are fewer. */
double study_loss(const StudyRow *row, size_t end, size_t window);

/* Fills level, steps_to_converge, epochs_to_converge, multiplier, and the same of the validation
 * loss, of every BCD row that has a full update beside it (cases.h), by this rule, which is stored
 * in the file; train_loss and plateau_steps ... end_spread of all.  A full update has multiplier 1
 * and no level of its own: it was at that of a BCD row after steps_to_converge / multiplier
 * updates.  0, or -1 and an error when memory runs out. */
extern const char study_convergence_rule[];
int study_converge(Study *study);

#endif
