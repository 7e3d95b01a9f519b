/* A study: a table with one row per training, and the curves of each.  Its file: study_file.h. */
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
    char spec[H5_PATH];
    Options settings;
    Provenance provenance; /* in full; what is above is in the table too */
    /* what came out; NAN where it does not apply or was not reached */
    double train_loss, valid_loss, accuracy, perplexity;
    double level, steps_to_converge, epochs_to_converge, multiplier;
    double valid_level, valid_steps, valid_multiplier; /* the same by the validation loss */
    double plateau_steps, plateau_epochs, plateau_score, plateau_spread; /* converge.h */
    double end_score, end_spread;
    double seconds, wall, rate;
    double peak[MEM_ROLES + 1], closed_form; /* the last peak is that of all roles together */
    CurveRow *curve;
    EvaluationRow *evaluation;
    SwitchRow *switches;
    uint64_t curve_rows, evaluation_rows, switch_rows;
    double *operations; /* [curve_rows] done after each row of the curve; NULL: unknown */
} StudyRow;

typedef struct {
    int rows, capacity;
    StudyRow *row;
    char lacking[720];    /* what a file read does not say, in a line; "": they say all */
    char unfinished[400]; /* which runs read have not come to their end, in a line; "": none */
} Study;

/* Those of the table of its file.  What is computed from the curves, by study_converge, is optional
 * there. */
extern const H5Column study_columns[];
extern const int study_column_count;

/* Appends an empty row, reals NAN; NULL and an error when memory runs out.  Earlier row pointers
 * become invalid. */
StudyRow *study_add(Study *study);

/* Appends a row of another study, which keeps none of its curves.  -1 and an error when memory runs
 * out; the row stays as it was then. */
int study_move(Study *study, StudyRow *row);

/* Appends what a run's file says, under a name; takes the curves over.  -1 and an error. */
int study_add_run(Study *study, RunFile *run, const char *name);
void study_free(Study *study);

/* Makes a row of the curve a mean over so many updates, fewer where a phase ends: its step, rate
 * and seconds are those of the last of them, so that nothing but the losses between is lost.  No
 * row spans two phases. */
void study_thin(StudyRow *row, size_t updates);

/* Image models are judged by accuracy, language models by perplexity. */
bool study_is_images(const StudyRow *row);
/* Accuracy in per cent, or perplexity. */
double study_score(const StudyRow *row, const EvaluationRow *evaluation);

/* BCD in three submodels on all of the data, from random weights, as in Table 2: what enters a mean
 * multiplier. */
bool study_is_bcd3(const StudyRow *row);

/* "full", "offload", "BCD-1/3", or "1/3 x.9" where each submodel sees 0.9 of the data. */
const char *study_method(const StudyRow *row, char text[32]);

/* What a training is measured by: updates, seconds, operations. */
typedef enum { AXIS_UPDATES, AXIS_SECONDS, AXIS_OPERATIONS } StudyAxis;
/* How far it was after the update of a row of its curve; NAN where that is unknown. */
double study_axis_value(const StudyRow *row, size_t curve_row, StudyAxis axis);

/* How many rows of its curve lie before that; they are in order. */
size_t study_rows_before(const StudyRow *row, StudyAxis axis, double value);

/* Whether the seconds of two trainings may be compared: same processor or GPU, as many threads. */
bool study_times_comparable(const StudyRow *a, const StudyRow *b);

#endif
