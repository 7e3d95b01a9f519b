/* The same training with several seeds: means, and how far single ones spread. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

enum { SEEDS, UPDATES, UPDATES_SPREAD, RATIO, RATIO_SPREAD, SCORE, SCORE_SPREAD, COLUMNS };

static const TableColumn columns[COLUMNS] = {
    [SEEDS] = {"seeds", "seeds", "", COLUMN_NUMBER, 0},
    [UPDATES] = {"updates", "updates", "to level", COLUMN_NUMBER, 0},
    [UPDATES_SPREAD] = {"updates_spread", "+-", "", COLUMN_NUMBER, 0},
    [RATIO] = {"multiplier", "B-F", "", COLUMN_NUMBER, 2},
    [RATIO_SPREAD] = {"multiplier_spread", "+-", "", COLUMN_NUMBER, 2},
    [SCORE] = {"score", "score", "% or perpl.", COLUMN_NUMBER, 2},
    [SCORE_SPREAD] = {"score_spread", "+-", "", COLUMN_NUMBER, 2},
};

static double updates_of(const StudyRow *row) { return row->steps_to_converge; }
static double ratio_of(const StudyRow *row) { return row->multiplier; }
static double score_of(const StudyRow *row) {
    return study_is_images(row) ? 100 * row->accuracy : row->perplexity;
}

/* Generated images are others with each seed. */
static bool same_data(const StudyRow *a, const StudyRow *b) {
    return !strcmp(a->data, b->data) &&
           (!strcmp(a->checksum, b->checksum) || !strcmp(a->data, "synthetic"));
}

static bool same_but_seed(const StudyRow *a, const StudyRow *b) {
    return !strcmp(a->model, b->model) && same_data(a, b) && !strcmp(a->optimizer, b->optimizer) &&
           !strcmp(a->method, b->method) && !strcmp(a->device, b->device) &&
           !strcmp(a->precision, b->precision) && a->batch == b->batch &&
           a->submodels == b->submodels && a->fraction == b->fraction && a->lr == b->lr &&
           a->steps == b->steps;
}

/* Mean, and the standard deviation of a single one (n - 1), of those that reached a number. */
static void put_mean(Table *table, int column, const Study *study, const StudyRow *of,
                     double (*value)(const StudyRow *row)) {
    double sum = 0, squares = 0;
    int count = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int r = 0; r < study->rows; r++) {
            const StudyRow *row = &study->row[r];
            double number = same_but_seed(row, of) ? value(row) : NAN;
            if (isnan(number)) continue;
            if (pass == 0) {
                sum += number;
                count++;
            } else {
                squares += (number - sum / count) * (number - sum / count);
            }
        }
    if (count) table_number(table, column, sum / count, SOURCE_MEASURED);
    if (count > 1) table_number(table, column + 1, sqrt(squares / (count - 1)), SOURCE_MEASURED);
}

static int count_seeds(const Study *study, const StudyRow *of) {
    int count = 0;
    for (int r = 0; r < study->rows; r++) count += same_but_seed(&study->row[r], of);
    return count;
}

static bool is_first(const Study *study, int row) {
    for (int r = 0; r < row; r++)
        if (same_but_seed(&study->row[r], &study->row[row])) return false;
    return true;
}

int report_seeds(Tables *tables, const Study *study) {
    Table *table = NULL;
    char method[32];
    for (int r = 0; r < study->rows; r++) {
        const StudyRow *row = &study->row[r];
        int seeds = count_seeds(study, row);
        if (seeds < 2 || !is_first(study, r)) continue;
        if (!table)
            table = tables_add(tables, "seeds", "Several seeds: means and spread", "training",
                               columns, COLUMNS);
        if (!table) return -1;
        table_row(table, "%.32s %s %s", row->model, row->optimizer, study_method(row, method));
        table_number(table, SEEDS, seeds, SOURCE_NONE);
        put_mean(table, UPDATES, study, row, updates_of);
        put_mean(table, RATIO, study, row, ratio_of);
        put_mean(table, SCORE, study, row, score_of);
    }
    if (table)
        table_note(table,
                   "+-: standard deviation of a single training.  Updates and B-F multiplier: "
                   "of those seeds that reached the level of their own full update.");
    return 0;
}
