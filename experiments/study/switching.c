/* When and in what order the submodels take turns: trainings that differ in nothing else. */
#include <math.h>

#include "measures.h"
#include "networks.h"

/* Varies what a BCD training depends on besides M: the length of a phase, whether optimizer state
 * is kept, and the order of the submodels. */
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

/* The first row of the switches is the start. */
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
    .note =
        {"Scores and losses at the end of the training.  every K: phases of K updates, with an e "
         "of K epochs; auto: until the loss stops falling.  Optimizer state starts from zero in "
         "each phase unless it is kept."},
};
