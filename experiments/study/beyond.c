/* The trainings beyond the paper.  Long ones: `converged-pilot` chooses settings, `converged`
 * trains to convergence (paper_repro.md has the protocol), `remedies` tries what might help BCD.
 * Short ones: `switching`. */
#include "networks.h"

/* What the settings of the long trainings mean:
 *
 * augment: without crops and flips the image networks overfit early, far from the published
 * accuracies.
 * resnet:depth=8,width=8: ResNet-8 with half its channels.  On two cores three seeds of it converge
 * in hours, those of ResNet-8 in days.
 * limit=10000 eval-every=156: a fifth of the training images and all test images, evaluated every
 * second epoch.
 * switch-every=0.25e: a quarter of an epoch.  The GPT's have 942 updates, and 847 on nine tenths of
 * the data, and it is evaluated at their ends: right after a switch Adam, whose state begins anew,
 * has raised the loss.
 * warmup=391 (of limit=10000: 79) final-lr=0: over the first epoch, then a cosine to 0. */

/* clang-format off */

/* Entries of the long experiments. */
#define LONG_SMOKE \
        {.model = "resnet:depth=8,width=2", .data = "synthetic", .optimizers = "sgd", \
         .settings = "limit=96 batch=16 epochs=6 eval-every=2", \
         .ways = "full lr=0.1; bcd lr=0.05 switch-every=4"}
#define RESNET8_HALF "resnet:depth=8,width=8"
#define IMAGES(network, optimizer, how_many, more, way) \
        {.model = network, .data = "cifar10", .optimizers = optimizer, .seeds = how_many, \
         .settings = "batch=128 augment=1 " more, .ways = way}
#define WORDS(how_many, more, way) \
        {.model = LAPTOP_GPT, .data = "wikitext2:2048", .optimizers = "adam", .seeds = how_many, \
         .settings = "batch=16 warmup=100 clip=1 eval-samples=1000 " more, .ways = way}

/* ---- the pilot ------------------------------------------------------------------------------- */

const TrainingKind training_converged_pilot = {
    .name = "converged-pilot",
    .takes_hours = true,
    .preset = {
    [PRESET_SMOKE] = {LONG_SMOKE},
    [PRESET_LAPTOP] = {
        /* Varies one setting at a time around rate 0.1, phases of an epoch, running statistics.
         * The best of three rates of the full update was always at the edge, hence its fourth, at
         * the end, here and below. */
        IMAGES(RESNET8_HALF, "sgd", 1, "epochs=15",
               "full lr=0.1; bcd lr=0.1 switch-every=1e; bcd lr=0.1 switch-every=0.25e; "
               "bcd lr=0.1 switch-every=40; bcd lr=0.1 switch-every=auto; "
               "bcd lr=0.1 switch-every=1e frozen-norm=batch; full lr=0.05; full lr=0.2; "
               "bcd lr=0.05 switch-every=1e; bcd lr=0.2 switch-every=1e; full lr=0.4"),
        /* The same network with a cosine. */
        IMAGES(RESNET8_HALF, "sgd", 1, "epochs=15 warmup=391 final-lr=0",
               "full lr=0.1 schedule=cosine; bcd lr=0.1 switch-every=1e schedule=cosine"),
        /* Rates and phases of the GPT. */
        WORDS(1, "epochs=2 eval-every=471",
              "full lr=0.002; bcd lr=0.002 switch-every=0.25e; bcd lr=0.002 switch-every=40; "
              "bcd lr=0.002 switch-every=1e; bcd lr=0.002 switch-every=auto; full lr=0.001; "
              "full lr=0.004; bcd lr=0.001 switch-every=0.25e; bcd lr=0.004 switch-every=0.25e; "
              "full lr=0.0005"),
        /* Rates of Adam on images. */
        IMAGES(RESNET8_HALF, "adam", 1, "epochs=15",
               "full lr=0.001; full lr=0.003; full lr=0.01; bcd lr=0.001 switch-every=1e; "
               "bcd lr=0.003 switch-every=1e; bcd lr=0.01 switch-every=1e; full lr=0.03"),
    },
    },
};

/* ---- the long trainings ---------------------------------------------------------------------- */

/* Ways to train on all images. */
static const char full_and_bcd[] = "full lr=0.2 epochs=60; bcd lr=0.1 epochs=120 switch-every=40";
static const char both_for_half[] = "full lr=0.2 epochs=30; bcd lr=0.1 epochs=60 switch-every=40";
static const char less_data[] =
    "bcd lr=0.1 epochs=120 switch-every=1e; bcd x0.9 lr=0.1 epochs=120 switch-every=1e; "
    "bcd x0.3 lr=0.1 epochs=400 switch-every=1e";

/* With the rates and phases that the pilot chose; the highest rates of a cosine are the best
 * constant ones.  On images BCD trains for two or three times as many epochs, because a parameter
 * takes part in one update of three. */
const TrainingKind training_converged = {
    .name = "converged",
    .takes_hours = true,
    .preset = {
    [PRESET_SMOKE] = {LONG_SMOKE},
    [PRESET_LAPTOP] = {
        /* Few images: full update and BCD. */
        IMAGES(RESNET8_HALF, "sgd", 0, "limit=10000 eval-every=156",
               "full lr=0.2 epochs=80; bcd lr=0.1 epochs=240 switch-every=40"),
        /* Less data for each submodel.  The data of a phase are drawn anew, so a phase has to be
         * long enough to see all of them.  An epoch is a pass over the part: three tenths make as
         * many updates in 800. */
        IMAGES(RESNET8_HALF, "sgd", 0, "limit=10000 eval-every=156",
               "bcd lr=0.1 epochs=240 switch-every=2e; bcd x0.9 lr=0.1 epochs=240 switch-every=2e; "
               "bcd x0.3 lr=0.1 epochs=800 switch-every=2e"),
        /* With a cosine. */
        IMAGES(RESNET8_HALF, "sgd", 0, "limit=10000 eval-every=156 warmup=79 final-lr=0",
               "full lr=0.2 epochs=80 schedule=cosine; "
               "bcd lr=0.1 epochs=240 switch-every=40 schedule=cosine"),
        /* With Adam. */
        IMAGES(RESNET8_HALF, "adam", 0, "limit=10000 eval-every=156",
               "full lr=0.01 epochs=80; bcd lr=0.003 epochs=240 switch-every=40"),
        /* The GPT: full update and BCD. */
        WORDS(2, "eval-every=942",
              "full lr=0.001 epochs=24; bcd3 lr=0.002 epochs=24 switch-every=0.25e"),
        /* Other numbers of submodels. */
        WORDS(2, "eval-every=942",
              "bcd2 lr=0.002 epochs=24 switch-every=0.25e; "
              "bcd4 lr=0.002 epochs=24 switch-every=0.25e"),
        /* Less data for each submodel. */
        WORDS(2, "eval-every=847", "bcd3 x0.9 lr=0.002 epochs=24 switch-every=0.25e"),
        /* With a cosine. */
        WORDS(2, "eval-every=942 final-lr=0",
              "full lr=0.001 epochs=24 schedule=cosine; "
              "bcd3 lr=0.002 epochs=24 switch-every=0.25e schedule=cosine"),
        /* All images: full update and BCD, and less data for each submodel. */
        IMAGES(RESNET8_HALF, "sgd", 0, "", full_and_bcd),
        IMAGES(RESNET8_HALF, "sgd", 0, "", less_data),
        /* All channels. */
        IMAGES("resnet8", "sgd", 0, "", full_and_bcd),
        /* Phases that end when the loss stops falling. */
        IMAGES(RESNET8_HALF, "sgd", 0, "", "bcd lr=0.1 epochs=120 switch-every=auto"),
        /* Deeper networks, for half as long. */
        IMAGES("resnet14", "sgd", 1, "", both_for_half),
        IMAGES("resnet20", "sgd", 1, "", both_for_half),
    },
    [PRESET_GPU] = {
        IMAGES("resnet8", "sgd", 0, "", full_and_bcd),
        IMAGES("resnet8", "sgd", 0, "", "bcd lr=0.1 epochs=120 switch-every=auto"),
        IMAGES("resnet8", "sgd", 0, "", less_data),
        IMAGES("resnet8", "adam", 0, "",
               "full lr=0.01 epochs=60; bcd lr=0.003 epochs=120 switch-every=40"),
        IMAGES("resnet14", "sgd", 0, "", full_and_bcd),
        IMAGES("resnet20", "sgd", 0, "", full_and_bcd),
        IMAGES("resnet50", "sgd", 1, "", full_and_bcd),
    },
    },
};

/* ---- remedies -------------------------------------------------------------------------------- */

/* Each remedy alone, to be compared with plain BCD.  LISA: embedding and head always train.  BREAD:
 * blocks above the submodel take a plain gradient step (correct-above), for both networks of rate
 * 0.1 at most.  Rates per submodel rise or fall with depth, because it is not known which submodel
 * needs more.  What brought most with one seed comes first. */
const TrainingKind training_remedies = {
    .name = "remedies",
    .takes_hours = true,
    .preset = {
    [PRESET_SMOKE] = {LONG_SMOKE},
    [PRESET_LAPTOP] = {
        /* Plain BCD is that of `converged` (bcd report converged.h5 remedies.h5).  With the
         * cosine the scores of neighbouring evaluations differ least, so that a small effect
         * shows. */
        IMAGES(RESNET8_HALF, "sgd", 2,
               "limit=10000 eval-every=156 warmup=79 final-lr=0 epochs=240 schedule=cosine",
               "bcd lr=0.1 switch-every=40 always-active=ends; "
               "bcd lr=0.1 switch-every=40 submodel-lr=0.5,1,2; "
               "bcd lr=0.1 switch-every=40 keep-state=1; "
               "bcd lr=0.1 switch-every=40 order=descending; "
               "bcd lr=0.1 switch-every=40 correct-above=1; "
               "bcd lr=0.1 switch-every=40 switch-warmup=40; "
               "bcd lr=0.1 switch-every=40 submodel-lr=2,1,0.5"),
        WORDS(2, "epochs=4 eval-every=471",
              "full lr=0.001; bcd lr=0.002 switch-every=0.25e; "
              "bcd lr=0.002 switch-every=0.25e always-active=ends; "
              "bcd lr=0.002 switch-every=0.25e submodel-lr=0.5,1,2; "
              "bcd lr=0.002 switch-every=0.25e keep-state=1; "
              "bcd lr=0.002 switch-every=0.25e order=descending; "
              "bcd lr=0.002 switch-every=0.25e correct-above=50; "
              "bcd lr=0.002 switch-every=0.25e switch-warmup=40; "
              "bcd lr=0.002 switch-every=0.25e submodel-lr=2,1,0.5"),
    },
    },
};

/* ---- short trainings ------------------------------------------------------------------------- */

/* Varies what a BCD training depends on besides M: the length of a phase, whether optimizer state
 * is kept, and the order of the submodels. */
const TrainingKind training_switching = {
    .name = "switching",
    .ways = "full; bcd; bcd switch-every=10; bcd switch-every=120; bcd keep-state=1; "
            "bcd switch-every=10 keep-state=1; bcd order=descending; bcd order=random",
    .preset = {
    [PRESET_SMOKE] = {SMOKE_WORDS},
    [PRESET_LAPTOP] = {LAPTOP_WORDS("adam")},
    [PRESET_GPU] = {GPU_IMAGES("resnet8", "cifar10", "sgd,adam", "epochs=60"), GPU_WORDS},
    [PRESET_PAPER] = {GPU_WORDS},
    },
};
/* clang-format on */
