/* When the submodels take turns, and in what order: trainings that differ in nothing else. */
#include <math.h>

#include "measures.h"
#include "networks.h"

/* What a training by BCD depends on beside M: how long a phase is, whether a submodel finds its
 * optimizer's state again, and who comes next.  Each beside the other variants' phases. */
const TrainingKind training_switching = {
    .name = "switching",
    .variant = {{1, 1, NULL},
                {0, 1, NULL},
                {0, 1, "switch-every=10"},
                {0, 1, "switch-every=120"},
                {0, 1, "keep-state=1"},
                {0, 1, "switch-every=10 keep-state=1"},
                {0, 1, "order=descending"},
                {0, 1, "order=random"}},
    .preset = {[PRESET_SMOKE] = {SMOKE_GPT("2")},
               [PRESET_LAPTOP] = {{LAPTOP_WIKITEXT(LAPTOP_GPT, "adam")}, LAPTOP_TEXT("adam")},
               [PRESET_GPU] = {GPU_RESNET("resnet8", "cifar10", "sgd,adam", "60"), GPU_GPT},
               [PRESET_PAPER] = {GPU_GPT}},
};

/* The first phase is the start. */
static double switches(const Pair *pair) {
    return pair->row->submodels > 1 ? (double)pair->row->switch_rows - 1 : NAN;
}

enum { COLUMNS = 7 };
static const MeasureColumn columns[COLUMNS] = {
    {"seeds", "seeds", "", 0, SOURCE_NONE, measure_one, SEED_COUNT},
    {"switches", "switches", "", 0, SOURCE_MEASURED, switches, MEAN_ALONE},
    {"multiplier", "B-F", "training", 2, SOURCE_MEASURED, measure_multiplier, OVER_SEEDS},
    {"valid_multiplier", "B-F", "validation", 2, SOURCE_MEASURED, measure_valid_multiplier,
     OVER_SEEDS},
    {"score", "score", "% or perpl.", 2, SOURCE_MEASURED, measure_score, OVER_SEEDS},
    {"train_loss", "training loss", "", 3, SOURCE_MEASURED, measure_train_loss, OVER_SEEDS},
    {"valid_loss", "valid. loss", "", 3, SOURCE_MEASURED, measure_valid_loss, OVER_SEEDS},
};

static bool has_other_ways(const Cases *cases, const Case *item) {
    for (int m = 0; m < item->methods; m++)
        if (case_first(cases, &item->method[m])->submodels > 1 &&
            !case_is_plain(cases, item, &item->method[m]))
            return true;
    return false;
}

int study_add_switching(Tables *tables, const Cases *cases) {
    char label[CASE_LABEL];
    const Case *item;
    Table *table = NULL;
    for (const CaseMethod *m = NULL; (m = cases_next(cases, m, &item));) {
        if (!has_other_ways(cases, item)) continue;
        if (!table)
            table = measure_table(tables, "switching", "When to switch, and in what order",
                                  "training", columns, COLUMNS);
        if (!table) return -1;
        table_row(table, "%s", case_label(cases, item, m, label));
        measure_put(table, 0, columns, COLUMNS, cases, item, m, false);
    }
    if (table)
        table_note(
            table,
            "Scores and losses of the end of the training.  Every K: updates of a phase; K "
            "with an e: epochs; auto: when the loss no longer falls.  Optimizer state begins "
            "anew at each phase unless it is kept.");
    return 0;
}
