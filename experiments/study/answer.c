/* Does BCD match the full update?  What it costs, and its score at equal updates, operations,
 * seconds and memory. */
#include <math.h>
#include <string.h>

#include "converge.h"
#include "measures.h"

/* ---- at equal cost --------------------------------------------------------------------------- */

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

/* Returns the score of a training when it has spent as much as the one of the pair that spends
 * less; NAN when that is not known of both. */
static double score_within(const StudyRow *row, const MeasurePair *pair, StudyAxis axis) {
    double bcd_total = study_axis_total(pair->row, axis),
           full_total = study_axis_total(pair->full, axis), budget = fmin(bcd_total, full_total);
    const StudyRow *cut = bcd_total > budget ? pair->row : full_total > budget ? pair->full : NULL;
    if (!isfinite(bcd_total + full_total) || (cut && !study_may_be_cut(cut)) ||
        (axis == AXIS_SECONDS && !study_times_comparable(pair->row, pair->full)))
        return NAN;
    size_t rows = study_rows_before(row, axis, nextafter(budget, INFINITY));
    return score_after(row, rows ? (double)row->curve[rows - 1].step : 0);
}

static double difference(const MeasurePair *pair, StudyAxis axis) {
    return score_within(pair->row, pair, axis) - score_within(pair->full, pair, axis);
}

static double bcd_score(const MeasurePair *pair) {
    return score_within(pair->row, pair, AXIS_UPDATES);
}
static double full_score(const MeasurePair *pair) {
    return score_within(pair->full, pair, AXIS_UPDATES);
}
static double equal_updates(const MeasurePair *pair) { return difference(pair, AXIS_UPDATES); }
static double equal_operations(const MeasurePair *pair) {
    return difference(pair, AXIS_OPERATIONS);
}
static double equal_seconds(const MeasurePair *pair) { return difference(pair, AXIS_SECONDS); }

/* ---- at equal memory ------------------------------------------------------------------------- */

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

static double equal_memory(const MeasurePair *pair) {
    const CaseMethod *small = find_fitting(pair->cases, pair->row);
    const StudyRow *full = small ? case_full_update(small->of, pair->row) : NULL;
    return full ? equal_updates(&(MeasurePair){pair->row, full, pair->cases}) : NAN;
}

/* ---- the table ------------------------------------------------------------------------------- */

static const MeasureTable answer = {
    .name = "answer",
    .title = "Does BCD match the full update?",
    .paired = true,
    .column =
        {
            {"seeds", "seeds", "", 0, SOURCE_NONE, measure_one, SEED_COUNT},
            {"memory", "memory", "/ full", 2, SOURCE_MEASURED, measure_peak, RATIO},
            {"time", "seconds", "/ full, an update", 2, SOURCE_MEASURED, measure_time_ratio,
             OVER_SEEDS},
            {"updates", "updates", "/ full", 2, SOURCE_MEASURED, measure_multiplier, OVER_SEEDS},
            {"bcd", "score", "BCD", 2, SOURCE_MEASURED, bcd_score, MEAN_ALONE},
            {"full", "score", "full", 2, SOURCE_MEASURED, full_score, MEAN_ALONE},
            {"equal_updates", "equal updates", "BCD - full", 2, SOURCE_MEASURED, equal_updates,
             OVER_SEEDS},
            {"updates_verdict", "equal updates", "verdict", 0, SOURCE_NONE, equal_updates, VERDICT},
            {"equal_operations", "equal operations", "BCD - full", 2, SOURCE_MEASURED,
             equal_operations, OVER_SEEDS},
            {"operations_verdict", "equal operations", "verdict", 0, SOURCE_NONE, equal_operations,
             VERDICT},
            {"equal_seconds", "equal seconds", "BCD - full", 2, SOURCE_MEASURED, equal_seconds,
             OVER_SEEDS},
            {"seconds_verdict", "equal seconds", "verdict", 0, SOURCE_NONE, equal_seconds, VERDICT},
            {"equal_memory", "equal memory", "BCD - full", 2, SOURCE_MEASURED, equal_memory,
             OVER_SEEDS},
            {"memory_verdict", "equal memory", "verdict", 0, SOURCE_NONE, equal_memory, VERDICT},
        },
    .note =
        {"Memory: the peak of all roles.  Updates: to the same smoothed training loss.  Equal "
         "memory: at equal updates, next to the full update of another network: the largest here "
         "whose peak is not above BCD's.",
         "Score: accuracy in %, or perplexity, on the validation split after as many updates as "
         "the shorter of the two had; differences also after as many operations or seconds as the "
         "one that took less.  Interpolated between evaluations; not the best until then.  "
         "Operations are counted from shapes.  A training with a cosine is compared only as a "
         "whole.",
         "Verdict: one is ahead when the mean difference of paired seeds exceeds its standard "
         "error (the spread over the root of the seeds) times Student's t (two-sided, 95 %); with "
         "one seed there is no verdict.  Each is tested by itself: of twenty without any "
         "difference, chance calls one ahead.",
         study_times_note},
};

/* "resnet8 BCD-1/3: 0.84 x memory, 0.59 x time per update, 4.32 x updates" */
static void put_sentence(Table *table) {
    static const char *const words[] = {"memory", "time per update", "updates"};
    const char *before = ": ";
    Text title = text_of("%.90s", table->label[0]);
    for (int c = 0; c < 3; c++) {
        double value = table->cell[1 + c].value;
        if (isnan(value)) continue;
        text_add(&title, "%s%.2f x %s", before, value, words[c]);
        before = ", ";
    }
    strcpy(table->title, text_of("%.159s", title.text).text);
}

void study_add_answer(Tables *tables, const Cases *cases) {
    Table *table = measure_add(tables, cases, &answer);
    if (table && !table->failed && table->rows == 1) put_sentence(table);
}
