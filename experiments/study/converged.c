/* The table of each training's own convergence. */
#include <math.h>

#include "converge.h"
#include "measures.h"

static double trained(const MeasurePair *pair) { return pair->row->epochs; }
static double own_epochs(const MeasurePair *pair) { return pair->row->plateau_epochs; }
static double own_score(const MeasurePair *pair) { return pair->row->plateau_score; }
static double own_spread(const MeasurePair *pair) { return pair->row->plateau_spread; }
static double end_score(const MeasurePair *pair) { return pair->row->end_score; }
static bool compares(const MeasurePair *pair) {
    const StudyRow *row = pair->row, *full = pair->full;
    return full && row->submodels > 1 && (study_may_be_cut(row) || row->steps == full->steps);
}
static double at_equal(const MeasurePair *pair) {
    if (!compares(pair)) return NAN;
    return plateau_score(pair->row, fmin((double)pair->row->steps, (double)pair->full->steps),
                         NULL);
}
static double end_difference(const MeasurePair *pair) {
    if (!pair->full || pair->row->submodels == 1) return NAN;
    return pair->row->end_score - pair->full->end_score;
}
static double own_multiplier(const MeasurePair *pair) {
    return compares(pair) ? pair->row->plateau_epochs / pair->full->plateau_epochs : NAN;
}
static double same_loss(const MeasurePair *pair) {
    return compares(pair) ? plateau_multiplier(pair->row, pair->full) : NAN;
}

/* Selects cases with enough evaluations for the rule. */
static bool has_means(const CaseMethod *method) {
    const StudyCase *item = method->of;
    for (int m = 0; m < item->methods; m++)
        if (item->method[m].row[0]->evaluation_rows >= 2 * PLATEAU_MEAN) return true;
    return false;
}

const MeasureTable measures_converged = {
    .name = "converged",
    .title = "Each training to its own convergence",
    .selects = has_means,
    .column =
        {
            {"seeds", "seeds", "", 0, SOURCE_NONE, measure_one, SEED_COUNT},
            {"epochs", "trained", "epochs", 0, SOURCE_NONE, trained, MEAN_ALONE},
            {"converged", "converged", "seeds", 0, SOURCE_MEASURED, own_epochs, SEED_COUNT},
            {"own_epochs", "after", "epochs", 1, SOURCE_MEASURED, own_epochs, OVER_SEEDS},
            {"score", "score", "there", 2, SOURCE_MEASURED, own_score, OVER_SEEDS},
            {"spread", "of five", "spread", 2, SOURCE_MEASURED, own_spread, MEAN_ALONE},
            {"end", "score", "at the end", 2, SOURCE_MEASURED, end_score, OVER_SEEDS},
            {"at_equal", "score", "at equal upd.", 2, SOURCE_MEASURED, at_equal, OVER_SEEDS},
            {"own_multiplier", "B-F", "own", 2, SOURCE_MEASURED, own_multiplier, OVER_SEEDS},
            {"same_loss", "B-F", "same loss", 2, SOURCE_MEASURED, same_loss, OVER_SEEDS},
            {"end_difference", "BCD - full", "at the end", 2, SOURCE_MEASURED, end_difference,
             OVER_SEEDS},
        },
    .note =
        {"Converged: at " PLATEAU_RULE
         ".  \"converged\" counts the seeds that did.  Scores are such means, on the validation "
         "split: per cent, or perplexity.",
         "B-F own: epochs until BCD converged over those until the full update did, as the paper "
         "counts; same loss: updates to the same validation loss, of means of " PLATEAU_TEXT(
             PLATEAU_MEAN) " evaluations.  At equal updates: at the end of the shorter of the two.",
         "An epoch is a pass over the data, or over the part that is used, whichever submodel is "
         "active.  Trainings with a cosine are compared as a whole only, because their rate "
         "depends on how long they are.",
         "BCD - full: of scores at the end, in pairs of the same seed; of three pairs a mean is "
         "beyond chance (Student's t, 95 %) when it is more than 2.48 times its spread."},
};
