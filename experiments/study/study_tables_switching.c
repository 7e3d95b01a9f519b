/* When the submodels take turns, and in what order: methods that differ in nothing else. */
#include "study_tables_parts.h"

enum { SEEDS, SWITCHES, UPDATES, VALIDATION, SCORE, TRAIN, VALID, COLUMNS };

static const TableColumn columns[COLUMNS] = {
    [SEEDS] = {.name = "seeds", .head = "seeds"},
    [SWITCHES] = {.name = "switches", .head = "switches"},
    [UPDATES] = {.name = "multiplier", .head = "B-F", .unit = "training", .decimals = 2},
    [VALIDATION] = {.name = "valid_multiplier", .head = "B-F", .unit = "validation", .decimals = 2},
    [SCORE] = {.name = "score", .head = "score", .unit = "% or perpl.", .decimals = 2},
    [TRAIN] = {.name = "train_loss", .head = "training loss", .decimals = 3},
    [VALID] = {.name = "valid_loss", .head = "valid. loss", .decimals = 3},
};

static void put_method(Table *table, const Cases *cases, const CaseMethod *method) {
    Mean switches = {0}, updates = {0}, validation = {0}, score = {0}, train = {0}, valid = {0};
    for (int s = 0; s < method->seeds; s++) {
        const StudyRow *row = &cases->study->row[method->row[s]];
        if (row->submodels > 1) {
            mean_add(&switches, (double)row->switch_rows - 1); /* the first is the start */
            mean_add(&updates, row->multiplier);
            mean_add(&validation, row->valid_multiplier);
        }
        mean_add(&score, study_score(row));
        mean_add(&train, row->train_loss);
        mean_add(&valid, row->valid_loss);
    }
    table_number(table, SEEDS, method->seeds, SOURCE_NONE);
    table_number(table, SWITCHES, mean_value(&switches), SOURCE_MEASURED);
    study_put_mean(table, UPDATES, &updates, SOURCE_MEASURED);
    study_put_mean(table, VALIDATION, &validation, SOURCE_MEASURED);
    study_put_mean(table, SCORE, &score, SOURCE_MEASURED);
    study_put_mean(table, TRAIN, &train, SOURCE_MEASURED);
    study_put_mean(table, VALID, &valid, SOURCE_MEASURED);
}

static bool has_other_ways(const Cases *cases, const Case *item) {
    for (int m = 0; m < item->methods; m++)
        if (case_first(cases, &item->method[m])->submodels > 1 &&
            !case_is_plain(cases, item, &item->method[m]))
            return true;
    return false;
}

int study_add_switching(Tables *tables, const Cases *cases) {
    char name[CASE_NAME], how[CASE_NAME];
    Table *table = NULL;
    for (int c = 0; c < cases->cases; c++) {
        const Case *item = &cases->item[c];
        if (!has_other_ways(cases, item)) continue;
        if (!table)
            table = tables_add(tables, "switching", "When to switch, and in what order", "training",
                               columns, COLUMNS);
        if (!table) return -1;
        for (int m = 0; m < item->methods; m++) {
            const CaseMethod *method = &item->method[m];
            table_row(table, "%s %s", case_name(case_first(cases, method), name),
                      case_method(cases, item, method, how));
            put_method(table, cases, method);
        }
    }
    if (table)
        table_note(
            table,
            "Scores and losses of the end of the training.  Every K: updates of a phase; K "
            "with an e: epochs; auto: when the loss no longer falls.  Optimizer state begins "
            "anew at each phase unless it is kept.");
    return 0;
}
