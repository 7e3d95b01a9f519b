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

/* Of all long experiments. */
#define LONG_SMOKE \
        {.model = "resnet:depth=8,width=2", .data = "synthetic", .optimizers = "sgd", \
         .settings = "limit=96 batch=16 epochs=6 eval-every=2", \
         .ways = "full lr=0.1; bcd lr=0.05 switch-every=4"}

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
        {.model = "resnet:depth=8,width=8", .data = "cifar10", .optimizers = "sgd", .seeds = 1,
         .settings = "batch=128 augment=1 epochs=15",
         .ways = "full lr=0.1; bcd lr=0.1 switch-every=1e; bcd lr=0.1 switch-every=0.25e; "
                 "bcd lr=0.1 switch-every=40; bcd lr=0.1 switch-every=auto; "
                 "bcd lr=0.1 switch-every=1e frozen-norm=batch; full lr=0.05; full lr=0.2; "
                 "bcd lr=0.05 switch-every=1e; bcd lr=0.2 switch-every=1e; full lr=0.4"},
        /* The same network with a cosine. */
        {.model = "resnet:depth=8,width=8", .data = "cifar10", .optimizers = "sgd", .seeds = 1,
         .settings = "batch=128 augment=1 epochs=15 warmup=391 final-lr=0",
         .ways = "full lr=0.1 schedule=cosine; bcd lr=0.1 switch-every=1e schedule=cosine"},
        /* Rates and phases of the GPT. */
        {.model = LAPTOP_GPT, .data = "wikitext2:2048", .optimizers = "adam", .seeds = 1,
         .settings = "batch=16 warmup=100 clip=1 eval-samples=1000 epochs=2 eval-every=471",
         .ways = "full lr=0.002; bcd lr=0.002 switch-every=0.25e; bcd lr=0.002 switch-every=40; "
                 "bcd lr=0.002 switch-every=1e; bcd lr=0.002 switch-every=auto; full lr=0.001; "
                 "full lr=0.004; bcd lr=0.001 switch-every=0.25e; "
                 "bcd lr=0.004 switch-every=0.25e; full lr=0.0005"},
        /* Rates of Adam on images. */
        {.model = "resnet:depth=8,width=8", .data = "cifar10", .optimizers = "adam", .seeds = 1,
         .settings = "batch=128 augment=1 epochs=15",
         .ways = "full lr=0.001; full lr=0.003; full lr=0.01; bcd lr=0.001 switch-every=1e; "
                 "bcd lr=0.003 switch-every=1e; bcd lr=0.01 switch-every=1e; full lr=0.03"},
    },
    },
};

/* ---- the long trainings ---------------------------------------------------------------------- */

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
        {.model = "resnet:depth=8,width=8", .data = "cifar10", .optimizers = "sgd",
         .settings = "batch=128 augment=1 limit=10000 eval-every=156",
         .ways = "full lr=0.2 epochs=80; bcd lr=0.1 epochs=240 switch-every=40"},
        /* Less data for each submodel.  The data of a phase are drawn anew, so a phase has to be
         * long enough to see all of them.  An epoch is a pass over the part: three tenths make as
         * many updates in 800. */
        {.model = "resnet:depth=8,width=8", .data = "cifar10", .optimizers = "sgd",
         .settings = "batch=128 augment=1 limit=10000 eval-every=156",
         .ways = "bcd lr=0.1 epochs=240 switch-every=2e; "
                 "bcd x0.9 lr=0.1 epochs=240 switch-every=2e; "
                 "bcd x0.3 lr=0.1 epochs=800 switch-every=2e"},
        /* With a cosine. */
        {.model = "resnet:depth=8,width=8", .data = "cifar10", .optimizers = "sgd",
         .settings = "batch=128 augment=1 limit=10000 eval-every=156 warmup=79 final-lr=0",
         .ways = "full lr=0.2 epochs=80 schedule=cosine; "
                 "bcd lr=0.1 epochs=240 switch-every=40 schedule=cosine"},
        /* With Adam. */
        {.model = "resnet:depth=8,width=8", .data = "cifar10", .optimizers = "adam",
         .settings = "batch=128 augment=1 limit=10000 eval-every=156",
         .ways = "full lr=0.01 epochs=80; bcd lr=0.003 epochs=240 switch-every=40"},
        /* The GPT: full update and BCD. */
        {.model = LAPTOP_GPT, .data = "wikitext2:2048", .optimizers = "adam", .seeds = 2,
         .settings = "batch=16 warmup=100 clip=1 eval-samples=1000 eval-every=942",
         .ways = "full lr=0.001 epochs=24; bcd3 lr=0.002 epochs=24 switch-every=0.25e"},
        /* Other numbers of submodels. */
        {.model = LAPTOP_GPT, .data = "wikitext2:2048", .optimizers = "adam", .seeds = 2,
         .settings = "batch=16 warmup=100 clip=1 eval-samples=1000 eval-every=942",
         .ways = "bcd2 lr=0.002 epochs=24 switch-every=0.25e; "
                 "bcd4 lr=0.002 epochs=24 switch-every=0.25e"},
        /* Less data for each submodel. */
        {.model = LAPTOP_GPT, .data = "wikitext2:2048", .optimizers = "adam", .seeds = 2,
         .settings = "batch=16 warmup=100 clip=1 eval-samples=1000 eval-every=847",
         .ways = "bcd3 x0.9 lr=0.002 epochs=24 switch-every=0.25e"},
        /* With a cosine. */
        {.model = LAPTOP_GPT, .data = "wikitext2:2048", .optimizers = "adam", .seeds = 2,
         .settings = "batch=16 warmup=100 clip=1 eval-samples=1000 eval-every=942 final-lr=0",
         .ways = "full lr=0.001 epochs=24 schedule=cosine; "
                 "bcd3 lr=0.002 epochs=24 switch-every=0.25e schedule=cosine"},
        /* All images: full update and BCD, and less data for each submodel. */
        {.model = "resnet:depth=8,width=8", .data = "cifar10", .optimizers = "sgd",
         .settings = "batch=128 augment=1",
         .ways = "full lr=0.2 epochs=60; bcd lr=0.1 epochs=120 switch-every=40"},
        {.model = "resnet:depth=8,width=8", .data = "cifar10", .optimizers = "sgd",
         .settings = "batch=128 augment=1",
         .ways = "bcd lr=0.1 epochs=120 switch-every=1e; "
                 "bcd x0.9 lr=0.1 epochs=120 switch-every=1e; "
                 "bcd x0.3 lr=0.1 epochs=400 switch-every=1e"},
        /* All channels. */
        {.model = "resnet8", .data = "cifar10", .optimizers = "sgd",
         .settings = "batch=128 augment=1",
         .ways = "full lr=0.2 epochs=60; bcd lr=0.1 epochs=120 switch-every=40"},
        /* Phases that end when the loss stops falling. */
        {.model = "resnet:depth=8,width=8", .data = "cifar10", .optimizers = "sgd",
         .settings = "batch=128 augment=1", .ways = "bcd lr=0.1 epochs=120 switch-every=auto"},
        /* Deeper networks, for half as long. */
        {.model = "resnet14", .data = "cifar10", .optimizers = "sgd", .seeds = 1,
         .settings = "batch=128 augment=1",
         .ways = "full lr=0.2 epochs=30; bcd lr=0.1 epochs=60 switch-every=40"},
        {.model = "resnet20", .data = "cifar10", .optimizers = "sgd", .seeds = 1,
         .settings = "batch=128 augment=1",
         .ways = "full lr=0.2 epochs=30; bcd lr=0.1 epochs=60 switch-every=40"},
    },
    [PRESET_GPU] = {
        {.model = "resnet8", .data = "cifar10", .optimizers = "sgd",
         .settings = "batch=128 augment=1",
         .ways = "full lr=0.2 epochs=60; bcd lr=0.1 epochs=120 switch-every=40"},
        {.model = "resnet8", .data = "cifar10", .optimizers = "sgd",
         .settings = "batch=128 augment=1", .ways = "bcd lr=0.1 epochs=120 switch-every=auto"},
        {.model = "resnet8", .data = "cifar10", .optimizers = "sgd",
         .settings = "batch=128 augment=1",
         .ways = "bcd lr=0.1 epochs=120 switch-every=1e; "
                 "bcd x0.9 lr=0.1 epochs=120 switch-every=1e; "
                 "bcd x0.3 lr=0.1 epochs=400 switch-every=1e"},
        {.model = "resnet8", .data = "cifar10", .optimizers = "adam",
         .settings = "batch=128 augment=1",
         .ways = "full lr=0.01 epochs=60; bcd lr=0.003 epochs=120 switch-every=40"},
        {.model = "resnet14", .data = "cifar10", .optimizers = "sgd",
         .settings = "batch=128 augment=1",
         .ways = "full lr=0.2 epochs=60; bcd lr=0.1 epochs=120 switch-every=40"},
        {.model = "resnet20", .data = "cifar10", .optimizers = "sgd",
         .settings = "batch=128 augment=1",
         .ways = "full lr=0.2 epochs=60; bcd lr=0.1 epochs=120 switch-every=40"},
        {.model = "resnet50", .data = "cifar10", .optimizers = "sgd", .seeds = 1,
         .settings = "batch=128 augment=1",
         .ways = "full lr=0.2 epochs=60; bcd lr=0.1 epochs=120 switch-every=40"},
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
        {.model = "resnet:depth=8,width=8", .data = "cifar10", .optimizers = "sgd", .seeds = 2,
         .settings = "batch=128 augment=1 limit=10000 eval-every=156 warmup=79 final-lr=0 "
                     "epochs=240 schedule=cosine",
         .ways = "bcd lr=0.1 switch-every=40 always-active=ends; "
                 "bcd lr=0.1 switch-every=40 submodel-lr=0.5,1,2; "
                 "bcd lr=0.1 switch-every=40 keep-state=1; "
                 "bcd lr=0.1 switch-every=40 order=descending; "
                 "bcd lr=0.1 switch-every=40 correct-above=1; "
                 "bcd lr=0.1 switch-every=40 switch-warmup=40; "
                 "bcd lr=0.1 switch-every=40 submodel-lr=2,1,0.5"},
        {.model = LAPTOP_GPT, .data = "wikitext2:2048", .optimizers = "adam", .seeds = 2,
         .settings = "batch=16 warmup=100 clip=1 eval-samples=1000 epochs=4 eval-every=471",
         .ways = "full lr=0.001; bcd lr=0.002 switch-every=0.25e; "
                 "bcd lr=0.002 switch-every=0.25e always-active=ends; "
                 "bcd lr=0.002 switch-every=0.25e submodel-lr=0.5,1,2; "
                 "bcd lr=0.002 switch-every=0.25e keep-state=1; "
                 "bcd lr=0.002 switch-every=0.25e order=descending; "
                 "bcd lr=0.002 switch-every=0.25e correct-above=50; "
                 "bcd lr=0.002 switch-every=0.25e switch-warmup=40; "
                 "bcd lr=0.002 switch-every=0.25e submodel-lr=2,1,0.5"},
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
    [PRESET_SMOKE] = {
        {.model = SMOKE_GPT, .data = "text", .optimizers = "sgd,adam", .settings = SMOKE_WORDS,
         .sgd = "lr=0.1", .adam = "lr=3e-3"},
    },
    [PRESET_LAPTOP] = {
        {.model = LAPTOP_GPT, .data = "wikitext2:2048", .optimizers = "adam",
         .settings = LAPTOP_WORDS, .sgd = "clip=1", .adam = "lr=1e-3"},
        {.model = LAPTOP_GPT, .data = "text", .instead_of = "wikitext2:2048", .optimizers = "adam",
         .settings = LAPTOP_WORDS, .sgd = "clip=1", .adam = "lr=1e-3"},
    },
    [PRESET_GPU] = {
        {.model = "resnet8", .data = "cifar10", .optimizers = "sgd,adam", .settings = "epochs=60"},
        {.model = "gpt2-0.15B", .data = "wikitext2", .optimizers = "sgd,adam",
         .settings = "epochs=6 batch=1"},
    },
    [PRESET_PAPER] = {
        {.model = "gpt2-0.15B", .data = "wikitext2", .optimizers = "sgd,adam",
         .settings = "epochs=6 batch=1"},
    },
    },
};
/* clang-format on */
