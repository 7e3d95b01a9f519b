/* What tables of trainings are made of: columns that say what is measured of a training, or of one
 * by BCD and the full update of the same seed. */
#ifndef EXPERIMENTS_MEASURES_H
#define EXPERIMENTS_MEASURES_H

#include "../tables/table.h"
#include "cases.h"

/* A training, and the full update of the same seed; NULL: none. */
typedef struct {
    const StudyRow *row, *full;
} MeasurePair;

typedef double Measure(const MeasurePair *pair); /* NAN: there is none */

typedef enum {
    OVER_SEEDS, /* mean and spread */
    MEAN_ALONE,
    FIRST_SEED,
    SEED_COUNT /* of those that have the measure */
} MeasureKind;

/* A column of numbers: as TableColumn, and what is in it. */
typedef struct {
    const char *name, *head, *unit;
    int decimals;
    Source source;
    Measure *measure; /* NULL: filled otherwise */
    MeasureKind kind;
} MeasureColumn;

/* A table without rows; and the cells of a method from column `first` on; paired: only of seeds
 * with a full update. */
Table *measure_table(Tables *tables, const char *name, const char *title, const char *row_head,
                     const MeasureColumn *columns, int count);
void measure_put(Table *table, int first, const MeasureColumn *columns, int count,
                 const CaseMethod *method, bool paired);

/* A table with a row for each method that it is about; paired: as above. */
enum { MEASURE_COLUMNS = 12, MEASURE_NOTES = 4 };
typedef struct {
    const char *name, *title;
    bool (*is_about)(const CaseMethod *method);
    bool paired;
    MeasureColumn column[MEASURE_COLUMNS + 1]; /* name NULL ends */
    const char *note[MEASURE_NOTES + 1];       /* NULL ends */
} MeasureTable;

/* Adds it if it has rows. */
void measure_add(Tables *tables, const Cases *cases, const MeasureTable *measures);

extern const MeasureTable measures_converged; /* converged.c: each by itself */
extern const MeasureTable measures_switching; /* switching.c: when, and in what order */

Measure measure_one;
Measure measure_multiplier, measure_valid_multiplier; /* of BCD */
Measure measure_train_loss, measure_valid_loss, measure_perplexity;
Measure measure_score; /* per cent correct, or perplexity */
Measure measure_steps, measure_seconds;
Measure measure_trained; /* MiB of parameters, gradients and optimizer state at their peaks: what
                            the paper counts as memory */
Measure measure_peak, measure_closed_form; /* MiB: of all roles together; of the closed form */
Measure measure_time_ratio; /* an update over a full one; NAN where seconds must not be compared */
Measure measure_operations_ratio;
Measure measure_peak_ratio; /* over that of the full update */

/* What a training had spent at its end; NAN: unknown. */
double study_end(const StudyRow *row, StudyAxis axis);
extern const char study_clock_note[]; /* study_same_clock, said below a table */

/* Whether a method is BCD and one of its seeds has a full update to compare it with. */
bool study_pairs(const CaseMethod *method);

/* ---- budgets.c ------------------------------------------------------------------------------- */

/* What is compared: a score, of which more is better for images, less for language models; or a
 * loss. */
typedef enum { STUDY_SCORE, STUDY_LOSS } StudyQuality;

/* Means over the seeds where both are known. */
typedef struct {
    Mean budget, bcd, full, difference;
    const char *verdict; /* "BCD ahead", "full ahead", "undecided"; "": of one seed */
} StudyComparison;

/* A method at equal updates, seconds, ... with the full updates of a case, which may be another:
 * both at the end of the one that spent less. */
StudyComparison study_compare(const CaseMethod *method, const StudyCase *with, StudyAxis axis,
                              StudyQuality quality);
/* "240 updates" */
const char *study_budget(char text[64], double value, StudyAxis axis);

/* Adds the tables of all such comparisons, if there are any. */
void study_add_budgets(Tables *tables, const Cases *cases);

/* How many standard errors the mean of n differences has to be from 0 (95 %, two-sided); NAN below
 * 2. */
double study_student(int n);

/* ---- study_tables.c -------------------------------------------------------------------------- */

/* Appends the tables that the rows of a study have something for; none from a study without rows.
 * study_converge has been called, and study_operations for each row.  -1 and an error. */
int study_tables(Tables *tables, const Study *study);

#endif
