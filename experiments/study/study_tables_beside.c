/* BCD beside the full update: to the same loss, in each update, and in memory. */
#include <math.h>

#include "study_tables_parts.h"

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
static double to_level(const StudyRow *row, const StudyRow *full, StudyAxis axis) {
    return after(row, row->steps_to_converge, axis) /
           after(full, row->steps_to_converge / row->multiplier, axis);
}

enum { LEVEL_SEEDS, UPDATES, VALIDATION, OPERATIONS, SECONDS, LEVEL_COLUMNS };

static const TableColumn level_columns[LEVEL_COLUMNS] = {
    [LEVEL_SEEDS] = {"seeds", "seeds", "", COLUMN_NUMBER, 0, SOURCE_NONE},
    [UPDATES] = {"updates", "updates", "training loss", COLUMN_NUMBER, 2, SOURCE_NONE},
    [VALIDATION] = {"valid_updates", "updates", "valid. loss", COLUMN_NUMBER, 2, SOURCE_NONE},
    [OPERATIONS] = {"operations", "operations", "training loss", COLUMN_NUMBER, 2, SOURCE_NONE},
    [SECONDS] = {"seconds", "seconds", "training loss", COLUMN_NUMBER, 2, SOURCE_NONE},
};

static void put_level(Table *table, const Cases *cases, const Case *item,
                      const CaseMethod *method) {
    Mean updates = {0}, validation = {0}, operations = {0}, seconds = {0};
    int pairs = 0;
    for (int s = 0; s < method->seeds; s++) {
        const StudyRow *row = &cases->study->row[method->row[s]];
        const StudyRow *full = case_partner(cases, item, row);
        if (!full) continue;
        pairs++;
        mean_add(&updates, row->multiplier);
        mean_add(&validation, row->valid_multiplier);
        mean_add(&operations, to_level(row, full, AXIS_OPERATIONS));
        if (study_same_clock(row, full)) mean_add(&seconds, to_level(row, full, AXIS_SECONDS));
    }
    table_number(table, LEVEL_SEEDS, pairs, SOURCE_NONE);
    study_put_mean(table, UPDATES, &updates, SOURCE_MEASURED);
    study_put_mean(table, VALIDATION, &validation, SOURCE_MEASURED);
    study_put_mean(table, OPERATIONS, &operations, SOURCE_MEASURED);
    study_put_mean(table, SECONDS, &seconds, SOURCE_MEASURED);
}

enum { STEP_SEEDS, MS, STEP_TIME, STEP_OPERATIONS, TRAINED, PEAK, FORM, STEP_COLUMNS };

static const TableColumn step_columns[STEP_COLUMNS] = {
    [STEP_SEEDS] = {"seeds", "seeds", "", COLUMN_NUMBER, 0, SOURCE_NONE},
    [MS] = {"ms", "an update", "ms", COLUMN_NUMBER, 2, SOURCE_NONE},
    [STEP_TIME] = {"time", "time", "/ full", COLUMN_NUMBER, 2, SOURCE_NONE},
    [STEP_OPERATIONS] = {"operations", "operations", "/ full", COLUMN_NUMBER, 2, SOURCE_NONE},
    [TRAINED] = {"trained", "P+G+S", "/ full", COLUMN_NUMBER, 2, SOURCE_NONE},
    [FORM] = {"closed_form", "equal parts", "P+G+S / full", COLUMN_NUMBER, 2, SOURCE_NONE},
    [PEAK] = {"peak", "peak memory", "/ full", COLUMN_NUMBER, 2, SOURCE_NONE},
};

static void put_step(Table *table, const Cases *cases, const Case *item, const CaseMethod *method) {
    Mean ms = {0}, seconds = {0}, operations = {0}, trained = {0}, peak = {0}, form = {0};
    int pairs = 0;
    for (int s = 0; s < method->seeds; s++) {
        const StudyRow *row = &cases->study->row[method->row[s]];
        const StudyRow *full = case_partner(cases, item, row);
        if (!full) continue;
        pairs++;
        mean_add(&ms, 1e3 * study_per_update(row, AXIS_SECONDS));
        mean_add(&seconds, study_time_ratio(row, full));
        mean_add(&operations,
                 study_per_update(row, AXIS_OPERATIONS) / study_per_update(full, AXIS_OPERATIONS));
        mean_add(&trained, study_trained_bytes(row) / study_trained_bytes(full));
        mean_add(&peak, row->peak[MEM_ROLES] / full->peak[MEM_ROLES]);
        mean_add(&form, row->closed_form / full->closed_form);
    }
    table_number(table, STEP_SEEDS, pairs, SOURCE_NONE);
    study_put_mean(table, MS, &ms, SOURCE_MEASURED);
    study_put_mean(table, STEP_TIME, &seconds, SOURCE_MEASURED);
    table_number(table, STEP_OPERATIONS, mean_value(&operations), SOURCE_CLOSED_FORM);
    table_number(table, TRAINED, mean_value(&trained), SOURCE_MEASURED);
    table_number(table, PEAK, mean_value(&peak), SOURCE_MEASURED);
    table_number(table, FORM, mean_value(&form), SOURCE_CLOSED_FORM);
}

typedef void Put(Table *table, const Cases *cases, const Case *item, const CaseMethod *method);

/* A row for each BCD method with a full update beside it. */
static void put_methods(Table *table, const Cases *cases, Put *put) {
    char name[CASE_NAME], how[CASE_NAME];
    for (int c = 0; c < cases->cases; c++)
        for (int m = 0; m < cases->item[c].methods; m++) {
            const Case *item = &cases->item[c];
            const CaseMethod *method = &item->method[m];
            if (!study_pairs(cases, item, method)) continue;
            table_row(table, "%s %s", case_name(case_first(cases, method), name),
                      case_method(cases, item, method, how));
            put(table, cases, item, method);
        }
}

int study_add_same_loss(Tables *tables, const Cases *cases) {
    if (!study_any_pairs(cases)) return 0;
    Table *table = tables_add(tables, "same_loss", "BCD over the full update, to the same loss",
                              "training", level_columns, LEVEL_COLUMNS);
    if (!table) return -1;
    put_methods(table, cases, put_level);
    table_note(
        table,
        "Below 1, BCD needs less.  Means and spread over the seeds, each beside the full update of "
        "the "
        "same seed.  Operations are counted from shapes for the updates that were measured.");
    table_note(
        table,
        "The level: the higher of the lowest losses of the two, those of training smoothed by "
        "a trailing mean over a fortieth of the shorter training; of each, the first update "
        "at or below it, in validation on the straight lines between evaluations (one that is "
        "there at its first counts from that).  It depends on how long both were trained; the "
        "paper states no rule.");
    table_note(table, "%s", study_clock_note);
    table = tables_add(tables, "per_update", "An update of BCD over a full update, and memory",
                       "training", step_columns, STEP_COLUMNS);
    if (!table) return -1;
    put_methods(table, cases, put_step);
    table_note(
        table,
        "Means over all updates of a training, whichever submodel was active; evaluations "
        "left out.  P+G+S: parameters, gradients, optimizer state at their peaks; the closed "
        "form takes submodels of equal size.  Peak memory: all roles, activations too.");
    return 0;
}
