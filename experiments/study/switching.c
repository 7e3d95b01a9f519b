/* When the submodels take turns, and in what order: trainings that differ in nothing else. */
#include <math.h>

#include "measures.h"
#include "networks.h"

/* What a training by BCD depends on besides M: how long a phase is, whether a submodel finds its
 * optimizer's state again, and who comes next.  Each next to the other variants' phases. */
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
static double switches(const MeasurePair *pair) {
    return pair->row->submodels > 1 ? (double)pair->row->switch_rows - 1 : NAN;
}

static bool has_variants(const CaseMethod *method) {
    const StudyCase *item = method->of;
    for (int m = 0; m < item->methods; m++)
        if (item->method[m].row[0]->submodels > 1 && !case_is_plain(&item->method[m])) return true;
    return false;
}

const MeasureTable measures_switching = {
    .name = "switching",
    .title = "When to switch, and in what order",
    .selects = has_variants,
    .column =
        {
            {"seeds", "seeds", "", 0, SOURCE_NONE, measure_one, SEED_COUNT},
            {"switches", "switches", "", 0, SOURCE_MEASURED, switches, MEAN_ALONE},
            {"multiplier", "B-F", "training", 2, SOURCE_MEASURED, measure_multiplier, OVER_SEEDS},
            {"valid_multiplier", "B-F", "validation", 2, SOURCE_MEASURED, measure_valid_multiplier,
             OVER_SEEDS},
            {"score", "score", "% or perpl.", 2, SOURCE_MEASURED, measure_score, OVER_SEEDS},
            {"train_loss", "training loss", "", 3, SOURCE_MEASURED, measure_train_loss, OVER_SEEDS},
            {"valid_loss", "valid. loss", "", 3, SOURCE_MEASURED, measure_valid_loss, OVER_SEEDS},
        },
    .note = {"Scores and losses of the end of the training.  Every K: updates of a phase; K "
             "with an e: epochs; auto: when the loss no longer falls.  Optimizer state begins "
             "anew at each phase unless it is kept."},
};
