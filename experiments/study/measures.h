/* Tables of trainings: a column says what is measured of a training, or of a BCD training and the
 * full update of the same seed. */
#pragma once

#include "../tables/table.h"
#include "cases.h"

/* A training, and the full update of the same seed (NULL: none); and all trainings. */
typedef struct {
    const StudyRow *row, *full;
    const Cases *cases;
} MeasurePair;

typedef double Measure(const MeasurePair *pair); /* returns NAN when it does not apply */

typedef enum {
    OVER_SEEDS, /* mean and spread */
    MEAN_ALONE,
    RATIO,      /* mean over the measure of the full update, in a paired table */
    SEED_COUNT, /* how many seeds have the measure */
    VERDICT     /* of differences of scores: "BCD ahead", "full ahead" or "undecided" by Student's
                   t-test (95 %), or "" for one seed */
} MeasureKind;

/* A TableColumn of numbers or verdicts, and how its cells are computed. */
typedef struct {
    const char *name, *head, *unit;
    int decimals;
    Source source;
    Measure *measure;
    MeasureKind kind;
} MeasureColumn;

enum { MEASURE_COLUMNS = 14, MEASURE_NOTES = 4 };
typedef struct {
    const char *name, *title;
    bool (*selects)(const CaseMethod *method); /* which methods have a row; NULL: all */
    bool paired; /* only BCD has rows, and from seeds with a full update to compare with */
    MeasureColumn column[MEASURE_COLUMNS + 1]; /* name NULL ends */
    const char *note[MEASURE_NOTES + 1];       /* NULL ends */
} MeasureTable;

/* Adds the table and returns it, or NULL when it has no rows. */
Table *measure_add(Tables *tables, const Cases *cases, const MeasureTable *measures);
/* The same in steps: adds a table without rows, and fills the cells of the last row. */
Table *measure_table(Tables *tables, const MeasureTable *measures);
void measure_put(Table *table, const Cases *cases, const MeasureTable *measures,
                 const CaseMethod *method);

Measure measure_one;
Measure measure_multiplier, measure_valid_multiplier; /* NAN for full updates */
Measure measure_train_loss, measure_valid_loss, measure_perplexity;
Measure measure_score; /* per cent correct, or perplexity */
Measure measure_steps, measure_seconds;
Measure measure_trained; /* peak MiB of parameters, gradients and optimizer state: what the paper
                            counts as memory */
Measure measure_peak, measure_closed_form; /* MiB: peak of all roles; closed form */
Measure measure_time_ratio; /* an update over a full one; NAN when times are not comparable */

/* Returns the updates, seconds or operations of a whole training; NAN when unknown. */
double study_axis_total(const StudyRow *row, StudyAxis axis);
extern const char study_times_note[]; /* a note on study_times_comparable */

/* Returns the 97.5 % quantile of Student's t distribution with n - 1 degrees of freedom: by so many
 * standard errors the mean of n differences must differ from 0.  NAN for n < 2. */
double study_student(int n);

/* ---- answer.c -------------------------------------------------------------------------------- */

/* Adds the table that compares each BCD method with the full updates of the same seeds, in cost and
 * score, if there are any; of a single method the title says what it costs. */
void study_add_answer(Tables *tables, const Cases *cases);

/* ---- study_tables.c -------------------------------------------------------------------------- */

/* Computes what is known of a study's trainings (converge.h), groups them into cases, and appends
 * all tables that can be made of them, next to those of the paper only if `paper`.  Returns -1 with
 * an error set; the caller frees tables and cases either way. */
int study_tables(Tables *tables, Cases *cases, Study *study, bool paper);
