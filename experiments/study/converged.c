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
        .settings = "limit=96 batch=16 epochs=6 eval-every=2", .variant = smoke      \
    }
static const TrainingVariant smoke[] = {{1, 1, "lr=0.1"}, {0, 1, "lr=0.05 switch-every=4"}, {0}};

/* ---- networks and data ----------------------------------------------------------------------- */

/* Without crops and flips these networks overfit early, far from the published accuracies. */
#define IMAGES(name, opt, set, ways)                                                             \
    .model = name, .data = "cifar10", .optimizers = opt, .settings = "batch=128 augment=1 " set, \
    .variant = ways
#define WORDS(set, ways)                                                                   \
    .model = "gpt:layers=4,width=128,heads=4,context=64", .data = "wikitext2:2048",        \
    .optimizers = "adam", .settings = "batch=16 warmup=100 clip=1 eval-samples=1000 " set, \
    .variant = ways
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
 * quarter of an epoch. */
static const TrainingVariant pilot_sgd[] = {{1, 1, "lr=0.1"},
                                            {0, 1, "lr=0.1 switch-every=1e"},
                                            {0, 1, "lr=0.1 switch-every=0.25e"},
                                            {0, 1, "lr=0.1 switch-every=40"},
                                            {0, 1, "lr=0.1 switch-every=auto"},
                                            {0, 1, "lr=0.1 switch-every=1e frozen-norm=batch"},
                                            {1, 1, "lr=0.05"},
                                            {1, 1, "lr=0.2"},
                                            {0, 1, "lr=0.05 switch-every=1e"},
                                            {0, 1, "lr=0.2 switch-every=1e"},
                                            {0}};
static const TrainingVariant pilot_adam[] = {{1, 1, "lr=0.001"},
                                             {1, 1, "lr=0.003"},
                                             {1, 1, "lr=0.01"},
                                             {0, 1, "lr=0.001 switch-every=1e"},
                                             {0, 1, "lr=0.003 switch-every=1e"},
                                             {0, 1, "lr=0.01 switch-every=1e"},
                                             {0}};
static const TrainingVariant pilot_cosine[] = {
    {1, 1, "lr=0.1 schedule=cosine"}, {0, 1, "lr=0.1 switch-every=1e schedule=cosine"}, {0}};
static const TrainingVariant pilot_words[] = {{1, 1, "lr=0.002"},
                                              {0, 1, "lr=0.002 switch-every=0.25e"},
                                              {0, 1, "lr=0.002 switch-every=40"},
                                              {0, 1, "lr=0.002 switch-every=1e"},
                                              {0, 1, "lr=0.002 switch-every=auto"},
                                              {1, 1, "lr=0.001"},
                                              {1, 1, "lr=0.004"},
                                              {0, 1, "lr=0.001 switch-every=0.25e"},
                                              {0, 1, "lr=0.004 switch-every=0.25e"},
                                              {0}};

const TrainingKind training_converged_pilot = {
    .name = "converged-pilot",
    .preset = {[PRESET_SMOKE] = {SMOKE},
               [PRESET_LAPTOP] = {{IMAGES(HALF, "sgd", "epochs=15", pilot_sgd), .seeds = 1},
                                  {IMAGES(HALF, "sgd", "epochs=15 " COSINE, pilot_cosine),
                                   .seeds = 1},
                                  {WORDS("epochs=2 eval-every=471", pilot_words), .seeds = 1},
                                  {IMAGES(HALF, "adam", "epochs=15", pilot_adam), .seeds = 1}}},
    .hours = true,
};

/* ---- the long trainings ---------------------------------------------------------------------- */

/* With the rates and phases that the pilot chose.  BCD trains for two or three times as many
 * epochs, because a parameter takes part in one update of three. */
static const TrainingVariant long_sgd[] = {
    {1, 1, "lr=0.2 epochs=60"}, {0, 1, "lr=0.1 epochs=120 switch-every=40"}, {0}};
static const TrainingVariant long_auto[] = {{0, 1, "lr=0.1 epochs=120 switch-every=auto"}, {0}};
static const TrainingVariant long_adam[] = {
    {1, 1, "lr=0.01 epochs=60"}, {0, 1, "lr=0.003 epochs=120 switch-every=40"}, {0}};
/* The same on few images. */
static const TrainingVariant few_sgd[] = {
    {1, 1, "lr=0.2 epochs=80"}, {0, 1, "lr=0.1 epochs=240 switch-every=40"}, {0}};
/* The highest rates of the cosine are the best constant ones. */
static const TrainingVariant few_cosine[] = {
    {1, 1, "lr=0.2 epochs=80 schedule=cosine"},
    {0, 1, "lr=0.1 epochs=240 switch-every=40 schedule=cosine"},
    {0}};
static const TrainingVariant few_adam[] = {
    {1, 1, "lr=0.01 epochs=80"}, {0, 1, "lr=0.003 epochs=240 switch-every=40"}, {0}};
/* The data of a phase are drawn anew, so a phase has to be long enough to see all of them.  An
 * epoch is a pass over the part: three tenths make as many updates in 800. */
static const TrainingVariant few_less[] = {{0, 1, "lr=0.1 epochs=240 switch-every=2e"},
                                           {0, 0.9, "lr=0.1 epochs=240 switch-every=2e"},
                                           {0, 0.3, "lr=0.1 epochs=800 switch-every=2e"},
                                           {0}};
static const TrainingVariant less_data[] = {{0, 1, "lr=0.1 epochs=120 switch-every=1e"},
                                            {0, 0.9, "lr=0.1 epochs=120 switch-every=1e"},
                                            {0, 0.3, "lr=0.1 epochs=400 switch-every=1e"},
                                            {0}};
static const TrainingVariant long_words[] = {
    {1, 1, "lr=0.001 epochs=8"}, {3, 1, "lr=0.002 epochs=24 switch-every=0.25e"}, {0}};
static const TrainingVariant long_words_ufp[] = {{2, 1, "lr=0.002 epochs=24 switch-every=0.25e"},
                                                 {4, 1, "lr=0.002 epochs=24 switch-every=0.25e"},
                                                 {0}};
static const TrainingVariant long_words_less[] = {{3, 0.9, "lr=0.002 epochs=24 switch-every=0.25e"},
                                                  {0}};
static const TrainingVariant deeper[] = {
    {1, 1, "lr=0.2 epochs=30"}, {0, 1, "lr=0.1 epochs=60 switch-every=40"}, {0}};

const TrainingKind training_converged = {
    .name = "converged",
    .preset = {[PRESET_SMOKE] = {SMOKE},
               [PRESET_LAPTOP] = {{IMAGES(HALF, "sgd", FEW, few_sgd)},
                                  {IMAGES(HALF, "sgd", FEW, few_less)},
                                  {IMAGES(HALF, "sgd", FEW " " FEW_COSINE, few_cosine)},
                                  {IMAGES(HALF, "adam", FEW, few_adam)},
                                  {WORDS(QUARTER, long_words), .seeds = 2},
                                  {WORDS(QUARTER, long_words_ufp), .seeds = 2},
                                  {WORDS(QUARTER_OF_LESS, long_words_less), .seeds = 2},
                                  {IMAGES(HALF, "sgd", "", long_sgd)},
                                  {IMAGES(HALF, "sgd", "", less_data)},
                                  {IMAGES("resnet8", "sgd", "", long_sgd)},
                                  {IMAGES(HALF, "sgd", "", long_auto)},
                                  {IMAGES("resnet14", "sgd", "", deeper), .seeds = 1},
                                  {IMAGES("resnet20", "sgd", "", deeper), .seeds = 1}},
               [PRESET_GPU] = {{IMAGES("resnet8", "sgd", "", long_sgd)},
                               {IMAGES("resnet8", "sgd", "", long_auto)},
                               {IMAGES("resnet8", "sgd", "", less_data)},
                               {IMAGES("resnet8", "adam", "", long_adam)},
                               {IMAGES("resnet14", "sgd", "", long_sgd)},
                               {IMAGES("resnet20", "sgd", "", long_sgd)},
                               {IMAGES("resnet50", "sgd", "", long_sgd), .seeds = 1}}},
    .hours = true,
};

/* ---- remedies -------------------------------------------------------------------------------- */

/* With the cosine the scores of neighbouring evaluations differ least, so that a small effect
 * shows.  Each remedy alone, next to plain BCD.  LISA: embedding and head always train.  BREAD:
 * blocks above the submodel take a plain gradient step.  Rates per submodel rise or fall with
 * depth, because it is not known which submodel needs more. */
#define REMEDIES(full, lr, phase)                                                        \
    {1, 1, full}, {0, 1, lr phase}, {0, 1, lr phase " keep-state=1"},                    \
        {0, 1, lr phase " switch-warmup=40"}, {0, 1, lr phase " submodel-lr=2,1,0.5"},   \
        {0, 1, lr phase " submodel-lr=0.5,1,2"}, {0, 1, lr phase " order=descending"},   \
        {0, 1, lr phase " always-active=ends"}, {0, 1, lr phase " correct-above=0.1"}, { \
        0                                                                                \
    }
static const TrainingVariant remedies_images[] = {
    REMEDIES("lr=0.2 epochs=80", "lr=0.1", " switch-every=40")};
static const TrainingVariant remedies_words[] = {
    REMEDIES("lr=0.001", "lr=0.002", " switch-every=0.25e")};

const TrainingKind training_remedies = {
    .name = "remedies",
    .preset = {[PRESET_SMOKE] = {SMOKE},
               [PRESET_LAPTOP] = {{IMAGES(HALF, "sgd",
                                          FEW " " FEW_COSINE " epochs=240 schedule=cosine",
                                          remedies_images),
                                   .seeds = 2},
                                  {WORDS("epochs=4 eval-every=471", remedies_words), .seeds = 2}}},
    .hours = true,
};

/* ---- short trainings --------------------------------------------------------------------------
 */

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
