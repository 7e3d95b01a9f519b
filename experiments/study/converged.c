/* The trainings beyond the paper.  Long ones: `converged-pilot` chooses settings, `converged`
 * trains to convergence (paper_repro.md has the protocol), `remedies` tries what might help BCD.
 * Short ones: `switching`.  And the table of each training's own convergence. */
#include <math.h>

#include "converge.h"
#include "measures.h"
#include "networks.h"

#define SMOKE                                                                        \
    {                                                                                \
        .model = "resnet:depth=8,width=2", .data = "synthetic", .optimizers = "sgd", \
        .settings = "limit=96 batch=16 epochs=6 eval-every=2",                       \
        .ways = "full lr=0.1; bcd lr=0.05 switch-every=4"                            \
    }

/* ---- networks and data ----------------------------------------------------------------------- */

/* Without crops and flips these networks overfit early, far from the published accuracies. */
#define IMAGES(name, opt, set, text)                                                             \
    .model = name, .data = "cifar10", .optimizers = opt, .settings = "batch=128 augment=1 " set, \
    .ways = text
#define WORDS(set, text)                                                                   \
    .model = "gpt:layers=4,width=128,heads=4,context=64", .data = "wikitext2:2048",        \
    .optimizers = "adam", .settings = "batch=16 warmup=100 clip=1 eval-samples=1000 " set, \
    .ways = text
/* ResNet-8 with half its channels: on two cores three seeds converge in hours, those of ResNet-8 in
 * days. */
#define HALF "resnet:depth=8,width=8"
/* A fifth of the training images and all test images, evaluated every second epoch. */
#define FEW "limit=10000 eval-every=156"
/* The GPT's phases of a quarter of an epoch have 942 updates, and 847 on nine tenths of the data.
 * It is evaluated at their ends: right after a switch Adam, whose state begins anew, has raised the
 * loss. */
#define QUARTER "eval-every=942"
#define QUARTER_OF_LESS "eval-every=847"
/* Warm-up over the first epoch, then a cosine to 0. */
#define COSINE "warmup=391 final-lr=0"
#define FEW_COSINE "warmup=79 final-lr=0"

/* ---- the pilot ------------------------------------------------------------------------------- */

/* Varies one setting at a time around rate 0.1, phases of an epoch, running statistics.  0.25e: a
 * quarter of an epoch.  The best of three rates of the full update was always at the edge, hence
 * its fourth, at the end. */
#define PILOT_SGD                                                               \
    "full lr=0.1; bcd lr=0.1 switch-every=1e; bcd lr=0.1 switch-every=0.25e; "  \
    "bcd lr=0.1 switch-every=40; bcd lr=0.1 switch-every=auto; "                \
    "bcd lr=0.1 switch-every=1e frozen-norm=batch; full lr=0.05; full lr=0.2; " \
    "bcd lr=0.05 switch-every=1e; bcd lr=0.2 switch-every=1e; full lr=0.4"
#define PILOT_ADAM                                                               \
    "full lr=0.001; full lr=0.003; full lr=0.01; bcd lr=0.001 switch-every=1e; " \
    "bcd lr=0.003 switch-every=1e; bcd lr=0.01 switch-every=1e; full lr=0.03"
#define PILOT_WORDS                                                                     \
    "full lr=0.002; bcd lr=0.002 switch-every=0.25e; bcd lr=0.002 switch-every=40; "    \
    "bcd lr=0.002 switch-every=1e; bcd lr=0.002 switch-every=auto; full lr=0.001; "     \
    "full lr=0.004; bcd lr=0.001 switch-every=0.25e; bcd lr=0.004 switch-every=0.25e; " \
    "full lr=0.0005"

const TrainingKind training_converged_pilot = {
    .name = "converged-pilot",
    .preset = {[PRESET_SMOKE] = {SMOKE},
               [PRESET_LAPTOP] = {{IMAGES(HALF, "sgd", "epochs=15", PILOT_SGD), .seeds = 1},
                                  {IMAGES(HALF, "sgd", "epochs=15 " COSINE,
                                          "full lr=0.1 schedule=cosine; "
                                          "bcd lr=0.1 switch-every=1e schedule=cosine"),
                                   .seeds = 1},
                                  {WORDS("epochs=2 eval-every=471", PILOT_WORDS), .seeds = 1},
                                  {IMAGES(HALF, "adam", "epochs=15", PILOT_ADAM), .seeds = 1}}},
    .takes_hours = true,
};

/* ---- the long trainings ---------------------------------------------------------------------- */

/* With the rates and phases that the pilot chose.  On images BCD trains for two or three times as
 * many epochs, because a parameter takes part in one update of three. */
#define LONG_SGD "full lr=0.2 epochs=60; bcd lr=0.1 epochs=120 switch-every=40"
#define LONG_AUTO "bcd lr=0.1 epochs=120 switch-every=auto"
#define LONG_ADAM "full lr=0.01 epochs=60; bcd lr=0.003 epochs=120 switch-every=40"
#define DEEPER "full lr=0.2 epochs=30; bcd lr=0.1 epochs=60 switch-every=40"
/* On few images.  The highest rates of the cosine are the best constant ones. */
#define FEW_SGD "full lr=0.2 epochs=80; bcd lr=0.1 epochs=240 switch-every=40"
#define FEW_SGD_COSINE                        \
    "full lr=0.2 epochs=80 schedule=cosine; " \
    "bcd lr=0.1 epochs=240 switch-every=40 schedule=cosine"
#define FEW_ADAM "full lr=0.01 epochs=80; bcd lr=0.003 epochs=240 switch-every=40"
/* The data of a phase are drawn anew, so a phase has to be long enough to see all of them.  An
 * epoch is a pass over the part: three tenths make as many updates in 800. */
#define FEW_LESS                                                                          \
    "bcd lr=0.1 epochs=240 switch-every=2e; bcd x0.9 lr=0.1 epochs=240 switch-every=2e; " \
    "bcd x0.3 lr=0.1 epochs=800 switch-every=2e"
#define LESS_DATA                                                                         \
    "bcd lr=0.1 epochs=120 switch-every=1e; bcd x0.9 lr=0.1 epochs=120 switch-every=1e; " \
    "bcd x0.3 lr=0.1 epochs=400 switch-every=1e"
#define WORDS_BCD "lr=0.002 epochs=24 switch-every=0.25e"
#define WORDS_FULL "full lr=0.001 epochs=24"
#define WORDS_COSINE WORDS_FULL " schedule=cosine; bcd3 " WORDS_BCD " schedule=cosine"

const TrainingKind training_converged = {
    .name = "converged",
    .preset = {[PRESET_SMOKE] = {SMOKE},
               [PRESET_LAPTOP] = {{IMAGES(HALF, "sgd", FEW, FEW_SGD)},
                                  {IMAGES(HALF, "sgd", FEW, FEW_LESS)},
                                  {IMAGES(HALF, "sgd", FEW " " FEW_COSINE, FEW_SGD_COSINE)},
                                  {IMAGES(HALF, "adam", FEW, FEW_ADAM)},
                                  {WORDS(QUARTER, WORDS_FULL "; bcd3 " WORDS_BCD), .seeds = 2},
                                  {WORDS(QUARTER, "bcd2 " WORDS_BCD "; bcd4 " WORDS_BCD),
                                   .seeds = 2},
                                  {WORDS(QUARTER_OF_LESS, "bcd3 x0.9 " WORDS_BCD), .seeds = 2},
                                  {WORDS(QUARTER " final-lr=0", WORDS_COSINE), .seeds = 2},
                                  {IMAGES(HALF, "sgd", "", LONG_SGD)},
                                  {IMAGES(HALF, "sgd", "", LESS_DATA)},
                                  {IMAGES("resnet8", "sgd", "", LONG_SGD)},
                                  {IMAGES(HALF, "sgd", "", LONG_AUTO)},
                                  {IMAGES("resnet14", "sgd", "", DEEPER), .seeds = 1},
                                  {IMAGES("resnet20", "sgd", "", DEEPER), .seeds = 1}},
               [PRESET_GPU] = {{IMAGES("resnet8", "sgd", "", LONG_SGD)},
                               {IMAGES("resnet8", "sgd", "", LONG_AUTO)},
                               {IMAGES("resnet8", "sgd", "", LESS_DATA)},
                               {IMAGES("resnet8", "adam", "", LONG_ADAM)},
                               {IMAGES("resnet14", "sgd", "", LONG_SGD)},
                               {IMAGES("resnet20", "sgd", "", LONG_SGD)},
                               {IMAGES("resnet50", "sgd", "", LONG_SGD), .seeds = 1}}},
    .takes_hours = true,
};

/* ---- remedies -------------------------------------------------------------------------------- */

/* With the cosine the scores of neighbouring evaluations differ least, so that a small effect
 * shows.  Each remedy alone, to be compared with plain BCD: for the images with that of `converged`
 * (bcd report converged.h5 remedies.h5).  LISA: embedding and head always train.  BREAD:
 * blocks above the submodel take a plain gradient step, for both networks of rate 0.1 at most.
 * Rates per submodel rise or fall with depth, because it is not known which submodel needs more.
 * What brought most with one seed comes first. */
#define REMEDIES(bcd, factor)                                                                 \
    bcd " always-active=ends; " bcd " submodel-lr=0.5,1,2; " bcd " keep-state=1; " bcd        \
        " order=descending; " bcd " correct-above=" factor "; " bcd " switch-warmup=40; " bcd \
        " submodel-lr=2,1,0.5"
#define IMAGES_BCD "bcd lr=0.1 switch-every=40"
#define PLAIN_WORDS "bcd lr=0.002 switch-every=0.25e"

const TrainingKind training_remedies = {
    .name = "remedies",
    .preset =
        {[PRESET_SMOKE] = {SMOKE},
         [PRESET_LAPTOP] = {{IMAGES(HALF, "sgd", FEW " " FEW_COSINE " epochs=240 schedule=cosine",
                                    REMEDIES(IMAGES_BCD, "1")),
                             .seeds = 2},
                            {WORDS("epochs=4 eval-every=471",
                                   "full lr=0.001; " PLAIN_WORDS "; " REMEDIES(PLAIN_WORDS, "50")),
                             .seeds = 2}}},
    .takes_hours = true,
};

/* ---- short trainings ------------------------------------------------------------------------- */

/* Varies what a BCD training depends on besides M: the length of a phase, whether optimizer state
 * is kept, and the order of the submodels. */
const TrainingKind training_switching = {
    .name = "switching",
    .ways =
        "full; bcd; bcd switch-every=10; bcd switch-every=120; bcd keep-state=1; "
        "bcd switch-every=10 keep-state=1; bcd order=descending; bcd order=random",
    .preset = {[PRESET_SMOKE] = {SMOKE_GPT("2")},
               [PRESET_LAPTOP] = {{LAPTOP_WIKITEXT(LAPTOP_GPT, "adam")}, LAPTOP_TEXT("adam")},
               [PRESET_GPU] = {GPU_RESNET("resnet8", "cifar10", "sgd,adam", "60"), GPU_GPT},
               [PRESET_PAPER] = {GPU_GPT}},
};

/* ---- the table ------------------------------------------------------------------------------- */

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
