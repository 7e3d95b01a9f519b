/* BCD beside the full update: to the same loss, in each update, and in memory. */
#include <math.h>

#include "measures.h"

/* How far a training was after so many updates; NAN where that is unknown. */
static double after(const StudyRow *row, double steps, StudyAxis axis) {
    size_t low = 0, high = row->curve_rows;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if ((double)row->curve[middle].step < steps)
            low = middle + 1;
        else
            high = middle;
    }
    return isnan(steps) || low == row->curve_rows ? NAN : study_at(row, low, axis);
}

/* What BCD took to the level of the pair over what the full update took. */
static double to_level(const Pair *pair, StudyAxis axis) {
    const StudyRow *row = pair->row;
    return after(row, row->steps_to_converge, axis) /
           after(pair->full, row->steps_to_converge / row->multiplier, axis);
}

static double level_operations(const Pair *pair) { return to_level(pair, AXIS_OPERATIONS); }

static double level_seconds(const Pair *pair) {
    return study_same_clock(pair->row, pair->full) ? to_level(pair, AXIS_SECONDS) : NAN;
}

static double update_ms(const Pair *pair) {
    return 1e3 * study_end(pair->row, AXIS_SECONDS) / study_end(pair->row, AXIS_UPDATES);
}

/* Of BCD over that of the full update. */
static double over_full(const Pair *pair, Measure *measure) {
    Pair full = {pair->full, pair->full};
    return measure(pair) / measure(&full);
}

static double trained_ratio(const Pair *pair) { return over_full(pair, measure_trained); }
static double peak_ratio(const Pair *pair) { return over_full(pair, measure_peak); }
static double form_ratio(const Pair *pair) { return over_full(pair, measure_closed_form); }

enum { LEVEL_COLUMNS = 5, STEP_COLUMNS = 7 };

static const MeasureColumn level_columns[LEVEL_COLUMNS] = {
    {"seeds", "seeds", "", 0, SOURCE_NONE, measure_one, SEED_COUNT},
    {"updates", "updates", "training loss", 2, SOURCE_MEASURED, measure_multiplier, OVER_SEEDS},
    {"valid_updates", "updates", "valid. loss", 2, SOURCE_MEASURED, measure_valid_multiplier,
     OVER_SEEDS},
    {"operations", "operations", "training loss", 2, SOURCE_MEASURED, level_operations, OVER_SEEDS},
    {"seconds", "seconds", "training loss", 2, SOURCE_MEASURED, level_seconds, OVER_SEEDS},
};

static const MeasureColumn step_columns[STEP_COLUMNS] = {
    {"seeds", "seeds", "", 0, SOURCE_NONE, measure_one, SEED_COUNT},
    {"ms", "an update", "ms", 2, SOURCE_MEASURED, update_ms, OVER_SEEDS},
    {"time", "time", "/ full", 2, SOURCE_MEASURED, measure_time_ratio, OVER_SEEDS},
    {"operations", "operations", "/ full", 2, SOURCE_CLOSED_FORM, measure_operations_ratio,
     MEAN_ALONE},
    {"trained", "P+G+S", "/ full", 2, SOURCE_MEASURED, trained_ratio, MEAN_ALONE},
    {"peak", "peak memory", "/ full", 2, SOURCE_MEASURED, peak_ratio, MEAN_ALONE},
    {"closed_form", "equal parts", "P+G+S / full", 2, SOURCE_CLOSED_FORM, form_ratio, MEAN_ALONE},
};

/* A table with a row for each BCD method with a full update beside it. */
static Table *add(Tables *tables, const Cases *cases, const char *name, const char *title,
                  const MeasureColumn *columns, int count) {
    char label[CASE_LABEL];
    const Case *item;
    Table *table = measure_table(tables, name, title, "training", columns, count);
    for (const CaseMethod *m = NULL; table && (m = cases_next(cases, m, &item));) {
        if (!study_pairs(cases, item, m)) continue;
        table_row(table, "%s", case_label(cases, item, m, label));
        measure_put(table, 0, columns, count, cases, item, m, true);
    }
    return table;
}

int study_add_same_loss(Tables *tables, const Cases *cases) {
    if (!study_any_pairs(cases)) return 0;
    Table *level = add(tables, cases, "same_loss", "BCD over the full update, to the same loss",
                       level_columns, LEVEL_COLUMNS);
    Table *step =
        level ? add(tables, cases, "per_update", "An update of BCD over a full update, and memory",
                    step_columns, STEP_COLUMNS)
              : NULL;
    if (!step) return -1;
    table_note(
        level,
        "Below 1, BCD needs less.  Means and spread over the seeds, each beside the full update of "
        "the "
        "same seed.  Operations are counted from shapes for the updates that were measured.");
    table_note(
        level,
        "The level: the higher of the lowest losses of the two, those of training smoothed by "
        "a trailing mean over a fortieth of the shorter training; of each, the first update "
        "at or below it, in validation on the straight lines between evaluations (one that is "
        "there at its first counts from that).  It depends on how long both were trained; the "
        "paper states no rule.");
    table_note(level, "%s", study_clock_note);
    table_note(
        step,
        "Means over all updates of a training, whichever submodel was active; evaluations "
        "left out.  P+G+S: parameters, gradients, optimizer state at their peaks; the closed "
        "form takes submodels of equal size.  Peak memory: all roles, activations too.");
    return 0;
}
