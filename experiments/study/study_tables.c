/* All tables of a study; here those that the paper does not have: BCD over the full update of the
 * same seed, to the same loss, per update, and in memory; and each method by itself. */
#include "measures.h"

#include <math.h>
#include <string.h>

#include "../paper/trainings.h"
#include "converge.h"

/* ---- over the full update -------------------------------------------------------------------- */

/* Returns the cost of a training's first `steps` updates; NAN when unknown. */
static double cost_of(const StudyRow *row, double steps, StudyAxis axis) {
    size_t at = study_rows_before(row, AXIS_UPDATES, steps);
    return isnan(steps) || at == row->curve_rows ? NAN : study_axis_value(row, at, axis);
}

/* Returns what BCD took to reach the level of the pair over what the full update took. */
static double to_level(const MeasurePair *pair, StudyAxis axis) {
    const StudyRow *row = pair->row;
    return cost_of(row, row->steps_to_converge, axis) /
           cost_of(pair->full, row->steps_to_converge / row->multiplier, axis);
}

static double level_operations(const MeasurePair *pair) { return to_level(pair, AXIS_OPERATIONS); }

static double level_seconds(const MeasurePair *pair) {
    return study_times_comparable(pair->row, pair->full) ? to_level(pair, AXIS_SECONDS) : NAN;
}

static double update_ms(const MeasurePair *pair) {
    return 1e3 * study_axis_total(pair->row, AXIS_SECONDS) /
           study_axis_total(pair->row, AXIS_UPDATES);
}

static double update_operations(const MeasurePair *pair) {
    return study_axis_total(pair->row, AXIS_OPERATIONS) / study_axis_total(pair->row, AXIS_UPDATES);
}

static const MeasureTable same_loss = {
    .name = "same_loss",
    .title = "BCD over the full update, to the same loss",
    .paired = true,
    .column =
        {
            {"seeds", "seeds", "", 0, SOURCE_NONE, measure_one, SEED_COUNT},
            {"updates", "updates", "training loss", 2, SOURCE_MEASURED, measure_multiplier,
             OVER_SEEDS},
            {"valid_updates", "updates", "valid. loss", 2, SOURCE_MEASURED,
             measure_valid_multiplier, OVER_SEEDS},
            {"operations", "operations", "training loss", 2, SOURCE_MEASURED, level_operations,
             OVER_SEEDS},
            {"seconds", "seconds", "training loss", 2, SOURCE_MEASURED, level_seconds, OVER_SEEDS},
        },
    .note =
        {"Below 1, BCD needs less.  Means and spreads over seeds, each over the full update of "
         "the same seed.  Operations are counted from shapes, for the updates that were measured.",
         "The loss is the higher of the two lowest ones, which both reached.  Training losses are "
         "smoothed by a trailing mean over a fortieth of the shorter training, validation losses "
         "interpolated between evaluations (from the first one on).  All depends on how long both "
         "were trained; the paper states no rule.",
         study_times_note},
};

static const MeasureTable per_update = {
    .name = "per_update",
    .title = "An update of BCD over a full update, and memory",
    .paired = true,
    .column =
        {
            {"seeds", "seeds", "", 0, SOURCE_NONE, measure_one, SEED_COUNT},
            {"ms", "an update", "ms", 2, SOURCE_MEASURED, update_ms, OVER_SEEDS},
            {"time", "time", "/ full", 2, SOURCE_MEASURED, measure_time_ratio, OVER_SEEDS},
            {"operations", "operations", "/ full", 2, SOURCE_CLOSED_FORM, update_operations, RATIO},
            {"trained", "P+G+S", "/ full", 2, SOURCE_MEASURED, measure_trained, RATIO},
            {"peak", "peak memory", "/ full", 2, SOURCE_MEASURED, measure_peak, RATIO},
            {"closed_form", "equal parts", "P+G+S / full", 2, SOURCE_CLOSED_FORM,
             measure_closed_form, RATIO},
        },
    .note =
        {"Means over all updates of a training, whichever submodel was active, without "
         "evaluations.  P+G+S: peaks of parameters, gradients and optimizer state; equal parts: "
         "their closed form for submodels of equal size.  Peak memory: of all roles, activations "
         "included."},
};

/* ---- to its own convergence ------------------------------------------------------------------ */

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
static double to_same_loss(const MeasurePair *pair) {
    return compares(pair) ? plateau_multiplier(pair->row, pair->full) : NAN;
}

/* Selects cases with enough evaluations for the rule. */
static bool has_means(const CaseMethod *method) {
    const StudyCase *item = method->of;
    for (int m = 0; m < item->methods; m++)
        if (item->method[m].row[0]->evaluation_rows >= 2 * PLATEAU_MEAN) return true;
    return false;
}

static const MeasureTable converged = {
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
            {"same_loss", "B-F", "same loss", 2, SOURCE_MEASURED, to_same_loss, OVER_SEEDS},
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

/* ---- each method by itself ------------------------------------------------------------------- */

/* The first row of the switches is the start. */
static double switches(const MeasurePair *pair) {
    return pair->row->submodels > 1 ? (double)pair->row->switch_rows - 1 : NAN;
}

static const MeasureTable trainings = {
    .name = "trainings",
    .title = "The trainings",
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
            {"updates", "updates", "", 0, SOURCE_MEASURED, measure_steps, MEAN_ALONE},
            {"seconds", "time", "s", 1, SOURCE_MEASURED, measure_seconds, OVER_SEEDS},
            {"peak", "peak memory", "MiB", 1, SOURCE_MEASURED, measure_peak, MEAN_ALONE},
        },
    .note =
        {"Means and spreads over seeds.  Scores (accuracy in %, or perplexity, on the validation "
         "split) and losses at the end of the training.  Time: without evaluations; other work may "
         "have run beside it.  All that is needed to repeat a training is in its file.",
         "\"every K\": phases of K updates, with an e of K epochs; \"auto\": until the loss stops "
         "falling.  Optimizer state starts from zero in each phase unless it is kept."},
};

/* Returns true when the seeds of a method come from different programs or machines. */
static bool is_mixed(const CaseMethod *method) {
    const StudyRow *first = method->row[0];
    for (int s = 1; s < method->seeds; s++) {
        const StudyRow *row = method->row[s];
        if (strcmp(row->provenance.commit, first->provenance.commit) ||
            !study_times_comparable(row, first))
            return true;
    }
    return false;
}

static void add_trainings(Tables *tables, const Cases *cases) {
    int mixed = 0;
    Table *table = measure_add(tables, cases, &trainings);
    while (mixed < cases->methods && !is_mixed(&cases->method[mixed])) mixed++;
    if (mixed < cases->methods)
        table_note(table,
                   "Means are over trainings of different commits, processors or numbers of "
                   "threads: of %s, for example.",
                   case_label(&cases->method[mixed]).text);
    if (cases->left_out)
        table_note(table,
                   "Left out: %d with the settings and seed of another training here, but other "
                   "losses; of these the one read first counts.",
                   cases->left_out);
}

/* ---- all ------------------------------------------------------------------------------------- */

int study_tables(Tables *tables, Cases *cases, Study *study, bool paper) {
    for (int r = 0; r < study->rows; r++) study_operations(&study->row[r]);
    study_converge(study);
    cases_make(cases, study);
    if (!cases->methods) return 0;
    study_add_answer(tables, cases);
    if (paper) {
        paper_add_comparisons(tables, cases);
        paper_add_multipliers(tables, cases);
    }
    measure_add(tables, cases, &converged);
    measure_add(tables, cases, &same_loss);
    measure_add(tables, cases, &per_update);
    measure_add(tables, cases, &paper_finetuned);
    add_trainings(tables, cases);
    return tables_failed(tables) ? -1 : 0;
}
