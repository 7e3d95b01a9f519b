#include "study_tables.h"

#include <math.h>
#include <string.h>

#include "study_tables_parts.h"

double study_trained_bytes(const StudyRow *row) {
    return row->peak[MEM_PARAMETERS] + row->peak[MEM_GRADIENTS] + row->peak[MEM_STATE];
}

double study_score(const StudyRow *row) {
    return study_is_images(row) ? 100 * row->accuracy : row->perplexity;
}

void study_put_mean(Table *table, int column, const Mean *mean, Source source) {
    table_mean(table, column, mean_value(mean), mean_spread(mean), source);
}

double study_end(const StudyRow *row, StudyAxis axis) {
    return row->curve_rows ? study_at(row, row->curve_rows - 1, axis) : NAN;
}

const char study_clock_note[] =
    "Seconds are compared only where both trainings had the same processor or GPU and as many "
    "threads.";

double study_per_update(const StudyRow *row, StudyAxis axis) {
    return study_end(row, axis) / study_end(row, AXIS_UPDATES);
}

double study_time_ratio(const StudyRow *row, const StudyRow *full) {
    if (!study_same_clock(row, full)) return NAN;
    return study_per_update(row, AXIS_SECONDS) / study_per_update(full, AXIS_SECONDS);
}

bool study_pairs(const Cases *cases, const Case *item, const CaseMethod *method) {
    for (int s = 0; s < method->seeds; s++) {
        const StudyRow *row = &cases->study->row[method->row[s]];
        if (row->submodels > 1 && case_partner(cases, item, row)) return true;
    }
    return false;
}

bool study_any_pairs(const Cases *cases) {
    for (int c = 0; c < cases->cases; c++)
        for (int m = 0; m < cases->item[c].methods; m++)
            if (study_pairs(cases, &cases->item[c], &cases->item[c].method[m])) return true;
    return false;
}

/* ---- B-F multipliers -------------------------------------------------------------------------
 */

enum { PUBLISHED, TRAININGS, UPDATES, VALIDATION, MULTIPLIER_COLUMNS };

static const TableColumn multiplier_columns[MULTIPLIER_COLUMNS] = {
    [PUBLISHED] = {"published", "Table 2", "mean", COLUMN_NUMBER, 2, SOURCE_NONE},
    [TRAININGS] = {"trainings", "trainings", "here", COLUMN_NUMBER, 0, SOURCE_NONE},
    [UPDATES] = {"training_loss", "to equal loss", "in training", COLUMN_NUMBER, 2, SOURCE_NONE},
    [VALIDATION] = {"validation_loss", "to equal loss", "in validation", COLUMN_NUMBER, 2,
                    SOURCE_NONE},
};

/* Adam and AdamW count together, as the paper's "Adam" may be either. */
static bool same_kind(const char *optimizer, const char *kind) {
    return !strncmp(optimizer, kind, strlen(kind));
}

/* One row: the trainings by BCD-1/3 on all of the data; images -1: of both kinds. */
static void put_multipliers(Table *table, const Cases *cases, const char *optimizer, int images) {
    Mean updates = {0}, validation = {0};
    for (int c = 0; c < cases->cases; c++)
        for (int m = 0; m < cases->item[c].methods; m++) {
            const CaseMethod *method = &cases->item[c].method[m];
            if (!study_is_third(case_first(cases, method)) ||
                !case_is_plain(cases, &cases->item[c], method))
                continue;
            for (int s = 0; s < method->seeds; s++) {
                const StudyRow *row = &cases->study->row[method->row[s]];
                if (!same_kind(row->optimizer, optimizer) ||
                    (images >= 0 && study_is_images(row) != (images == 1)))
                    continue;
                mean_add(&updates, row->multiplier);
                mean_add(&validation, row->valid_multiplier);
            }
        }
    table_number(table, PUBLISHED, paper_mean_multiplier(optimizer, images), SOURCE_RECOMPUTED);
    table_number(table, TRAININGS, updates.count, SOURCE_NONE);
    study_put_mean(table, UPDATES, &updates, SOURCE_MEASURED);
    study_put_mean(table, VALIDATION, &validation, SOURCE_MEASURED);
}

int study_add_multipliers(Tables *tables, const Cases *cases) {
    static const struct {
        const char *label, *optimizer;
        int images;
    } rows[] = {{"SGD, image models", "sgd", 1},
                {"SGD, language models", "sgd", 0},
                {"Adam, image models", "adam", 1},
                {"Adam, language models", "adam", 0},
                {"Adam, all (printed: 1.39)", "adam", -1}};
    Table *table =
        tables_add(tables, "multipliers", "B-F multipliers: updates of BCD-1/3 over full updates",
                   "optimizer, networks", multiplier_columns, MULTIPLIER_COLUMNS);
    if (!table) return -1;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        table_row(table, "%s", rows[r].label);
        put_multipliers(table, cases, rows[r].optimizer, rows[r].images);
    }
    table_note(
        table,
        "Means over all trainings here with three submodels, all of the data and a full update "
        "of the same seed; spread: the standard deviation of a single one.  Adam: and AdamW.");
    table_note(
        table,
        "Of three updates of BCD-1/3 a parameter takes part in one: far from convergence, as "
        "trainings of minutes are, about three times as many are to be expected.  The published "
        "trainings went on to convergence.");
    table_note(table, "%s", paper_notes[PAPER_NOTE_MULTIPLIER]);
    return 0;
}

int study_tables(Tables *tables, const Study *study) {
    Cases cases;
    if (!study->rows) return 0;
    if (cases_make(&cases, study)) return -1;
    int failed = study_add_published(tables, &cases) || study_add_multipliers(tables, &cases) ||
                 study_add_same_loss(tables, &cases) || study_add_budgets(tables, &cases) ||
                 study_add_finetuned(tables, &cases) || study_add_switching(tables, &cases) ||
                 study_add_ufp(tables, &cases) || study_add_trainings(tables, &cases);
    cases_free(&cases);
    return failed ? -1 : 0;
}
