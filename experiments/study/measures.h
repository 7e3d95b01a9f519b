/* What tables of trainings are made of: columns that say what is measured of a training, or of one
 * by BCD and the full update of the same seed. */
#ifndef EXPERIMENTS_MEASURES_H
#define EXPERIMENTS_MEASURES_H

#include "../tables/table.h"
#include "cases.h"

#define MIB (1024.0 * 1024)

/* A training, and the full update beside it; NULL: none. */
typedef struct {
    const StudyRow *row, *full;
} Pair;

typedef double Measure(const Pair *pair); /* NAN: there is none */

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

/* A table with these columns.  NULL and an error. */
Table *measure_table(Tables *tables, const char *name, const char *title, const char *row_head,
                     const MeasureColumn *columns, int count);
/* Fills the cells of a method from column `first` on; paired: only seeds with a full update. */
void measure_put(Table *table, int first, const MeasureColumn *columns, int count,
                 const Cases *cases, const Case *item, const CaseMethod *method, bool paired);

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

/* What a training had spent at its end; NAN: unknown. */
double study_end(const StudyRow *row, StudyAxis axis);
extern const char study_clock_note[]; /* study_same_clock, said below a table */

/* Whether a method is BCD and one of its seeds has a full update beside it; whether any is. */
bool study_pairs(const Cases *cases, const Case *item, const CaseMethod *method);
bool study_any_pairs(const Cases *cases);

/* How many standard errors the mean of n differences has to be from 0 (95 %, two-sided); NAN below
 * 2.  In budgets.c. */
double study_student(int n);

/* Each adds tables, where the study has something for them; -1 and an error. */
int study_add_converged(Tables *tables, const Cases *cases); /* each by itself */
int study_add_same_loss(Tables *tables, const Cases *cases); /* and an update, beside a full one */
int study_add_budgets(Tables *tables, const Cases *cases);   /* at equal updates, seconds, ... */
int study_add_switching(Tables *tables, const Cases *cases); /* when, and in what order */

#endif
