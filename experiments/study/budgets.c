/* Compares BCD with the full update at equal updates, operations, seconds and memory. */
#include <math.h>
#include <string.h>

#include "converge.h"
#include "measures.h"

/* ---- equal cost ------------------------------------------------------------------------------ */

/* Returns the score after so many updates, interpolated; NAN before the first evaluation. */
static double score_after(const StudyRow *row, double updates) {
    const EvaluationRow *before = NULL;
    for (size_t e = 0; e < row->evaluation_rows; e++) {
        const EvaluationRow *next = &row->evaluation[e];
        if ((double)next->step <= updates) {
            before = next;
            continue;
        }
        if (!before) return NAN;
        double weight = (updates - (double)before->step) / (double)(next->step - before->step);
        return (1 - weight) * study_score(row, before) + weight * study_score(row, next);
    }
    return before ? study_score(row, before) : NAN;
}

/* Returns the score when a training has spent the budget. */
static double score_within(const StudyRow *row, StudyAxis axis, double budget) {
    size_t rows = study_rows_before(row, axis, nextafter(budget, INFINITY));
    return score_after(row, rows ? (double)row->curve[rows - 1].step : 0);
}

static void add_seed(StudyComparison *sum, const StudyRow *row, const StudyRow *full,
                     StudyAxis axis) {
    double bcd_total = study_axis_total(row, axis), full_total = study_axis_total(full, axis),
           budget = fmin(bcd_total, full_total);
    const StudyRow *cut = bcd_total > budget ? row : full_total > budget ? full : NULL;
    if (!isfinite(bcd_total + full_total) || (cut && !study_may_be_cut(cut)) ||
        (axis == AXIS_SECONDS && !study_times_comparable(row, full)))
        return;
    double bcd_at = score_within(row, axis, budget), full_at = score_within(full, axis, budget);
    if (!isfinite(bcd_at + full_at)) return;
    mean_add(&sum->budget, budget);
    mean_add(&sum->bcd, bcd_at);
    mean_add(&sum->full, full_at);
    mean_add(&sum->difference, bcd_at - full_at);
}

/* From a table for n <= 10, else by Fisher's expansion about the normal quantile, within 0.001. */
double study_student(int n) {
    static const double t[] = {NAN,   NAN,   12.706, 4.303, 3.182, 2.776,
                               2.571, 2.447, 2.365,  2.306, 2.262};
    const double z = 1.95996, v = n - 1;
    if (n < (int)(sizeof t / sizeof *t)) return n < 2 ? NAN : t[n];
    return z + (pow(z, 3) + z) / (4 * v) + (5 * pow(z, 5) + 16 * pow(z, 3) + 3 * z) / (96 * v * v) +
           (3 * pow(z, 7) + 19 * pow(z, 5) + 17 * pow(z, 3) - 15 * z) / (384 * pow(v, 3));
}

const char *const verdict_names[VERDICTS] = {"", "BCD ahead", "full ahead", "undecided"};

static Verdict judge(const Mean *difference, bool more_is_better) {
    if (difference->count < 2) return NO_VERDICT;
    double error = mean_spread(difference) / sqrt(difference->count);
    if (!(fabs(difference->mean) > study_student(difference->count) * error)) return UNDECIDED;
    return (difference->mean > 0) == more_is_better ? BCD_AHEAD : FULL_AHEAD;
}

StudyComparison study_compare(const CaseMethod *method, const StudyCase *with, StudyAxis axis) {
    StudyComparison sum = {0};
    for (int s = 0; s < method->seeds; s++) {
        const StudyRow *full = case_full_update(with, method->row[s]);
        if (full) add_seed(&sum, method->row[s], full, axis);
    }
    sum.verdict = judge(&sum.difference, study_is_images(method->row[0]));
    return sum;
}

/* ---- equal memory ---------------------------------------------------------------------------- */

/* Returns the full update with the highest peak memory that is not above that of `row`, or NULL. */
static const CaseMethod *find_fitting(const Cases *cases, const StudyRow *row) {
    const CaseMethod *best = NULL;
    double max = 0;
    for (int m = 0; m < cases->methods; m++) {
        const StudyRow *full = cases->method[m].row[0];
        double peak = full->peak[MEM_ROLES];
        if (strcmp(full->method, "full") || !(peak > max) || peak > row->peak[MEM_ROLES] ||
            !case_settings_equal(full, row))
            continue;
        best = &cases->method[m];
        max = peak;
    }
    return best;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* What is equal; equal memory compares with a smaller network at equal updates. */
enum { EQUAL_MEMORY = 3, EQUALS };
static const StudyAxis equals[EQUALS] = {AXIS_UPDATES, AXIS_OPERATIONS, AXIS_SECONDS, AXIS_UPDATES};

const char *study_format_budget(char text[64], double value, StudyAxis axis) {
    if (axis == AXIS_UPDATES)
        snprintf(text, 64, "%.0f updates", value);
    else if (axis == AXIS_SECONDS)
        snprintf(text, 64, value < 100 ? "%.2g seconds" : "%.0f seconds", value);
    else if (value < 1e12)
        snprintf(text, 64, "%.3g Gflop", value / 1e9);
    else
        snprintf(text, 64, value < 1e15 ? "%.3g Tflop" : "%.4g Tflop", value / 1e12);
    return text;
}

enum { SEEDS, BUDGET, BCD, DIFFERENCE = 4, VERDICT, COLUMNS };

static void put_method(Table *table, const Cases *cases, const CaseMethod *method) {
    char label[CASE_LABEL], budget[64], network[CASE_NAME];
    for (int e = 0; e < EQUALS; e++) {
        const CaseMethod *small = e == EQUAL_MEMORY ? find_fitting(cases, method->row[0]) : method;
        if (!small) continue;
        StudyComparison c = study_compare(method, small->of, equals[e]);
        if (!c.difference.count) continue;
        study_format_budget(budget, mean_value(&c.budget), equals[e]);
        if (e == EQUAL_MEMORY)
            snprintf(budget, sizeof budget, "%.3g MiB: %.30s",
                     method->row[0]->peak[MEM_ROLES] / MIB, case_network(small->row[0], network));
        table_row(table, "%s", case_label(method, label));
        table_put(table, SEEDS, c.difference.count);
        table_text(table, BUDGET, SOURCE_NONE, "%s", budget);
        table_put(table, BCD, mean_value(&c.bcd), mean_value(&c.full));
        table_mean(table, DIFFERENCE, mean_value(&c.difference), mean_spread(&c.difference),
                   SOURCE_MEASURED);
        table_text(table, VERDICT, SOURCE_NONE, "%s", verdict_names[c.verdict]);
    }
}

void study_add_budgets(Tables *tables, const Cases *cases) {
    static const TableColumn columns[COLUMNS] = {
        {"seeds", "seeds", "", COLUMN_NUMBER, 0, SOURCE_NONE},
        {"budget", "at equal", "", COLUMN_TEXT, 0, SOURCE_NONE},
        {"bcd", "score", "BCD", COLUMN_NUMBER, 2, SOURCE_MEASURED},
        {"full", "score", "full", COLUMN_NUMBER, 2, SOURCE_MEASURED},
        {"difference", "difference", "BCD - full", COLUMN_NUMBER, 2, SOURCE_MEASURED},
        {"ahead", "verdict", "", COLUMN_TEXT, 0, SOURCE_NONE},
    };
    Table *table = NULL;
    for (int m = 0; m < cases->methods; m++) {
        if (!study_is_compared(&cases->method[m])) continue;
        if (!table)
            table =
                tables_add(tables, "equal_score", "Does BCD match the full update, at equal cost?",
                           "training", columns, COLUMNS);
        put_method(table, cases, &cases->method[m]);
    }
    if (!table) return;
    table_note(table,
               "Both at the end of the one that spent less (means over seeds).  Score: accuracy in "
               "%%, or perplexity, on the validation split at that point, not the best until then, "
               "interpolated between evaluations.  Operations are counted from shapes.  A training "
               "with a cosine is compared only as a whole.");
    table_note(table,
               "Verdict: one is ahead when the mean difference of paired seeds exceeds its "
               "standard error (the spread over the root of the seeds) times Student's t "
               "(two-sided, 95 %%); with one seed there is no verdict.  Each row is tested by "
               "itself: of twenty rows without any difference, chance calls one ahead.");
    table_note(table, "%s", study_times_note);
    table_note(table,
               "MiB: at equal updates, next to the full update of the network named: the largest "
               "here whose peak memory (all roles) is not above BCD's.");
}
