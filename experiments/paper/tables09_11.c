/* Tables 9 and 10, compression: each submodel sees a fraction of the data.  Table 11, UFP: one to
 * four submodels. */
#include "../study/networks.h"
#include "trainings.h"

/* ---- published ------------------------------------------------------------------------------- */

#define GPT(table, row, opt, m, fraction, epochs, printed, loss, mib)                          \
    {                                                                                          \
        table, row, "gpt2-0.15B", "wikitext2", opt, m, fraction, epochs, SCORE_TEN_PERPLEXITY, \
            printed, loss, mib                                                                 \
    }
const PaperRow paper_table9[] = {
    GPT(9, "0.9 1/3 SGD", "sgd", 3, 0.9, 40, 68.9, 1.9312, 1013.58),
    GPT(9, "1 1/3 SGD", "sgd", 3, 1.0, 44, 69.1, 1.9343, 1013.58),
    GPT(9, "1 1 SGD", "sgd", 1, 1.0, 24, 69.6, 1.9407, 1824.45),
    GPT(9, "0.9 1/3 Adam", "adam", 3, 0.9, 60, 67.5, 1.9110, 1216.30),
    GPT(9, "1 1/3 Adam", "adam", 3, 1.0, 50, 66.2, 1.8910, 1216.30),
    GPT(9, "1 1 Adam", "adam", 1, 1.0, 18, 65.9, 1.8869, 2432.60),
    {0},
};

#define RESNET14(row, m, fraction, epochs, accuracy, loss, mib)                               \
    {                                                                                         \
        10, row, "resnet14", "cifar10", "sgd", m, fraction, epochs, SCORE_ACCURACY, accuracy, \
            loss, mib                                                                         \
    }
const PaperRow paper_table10[] = {
    RESNET14("0.9 1/3", 3, 0.9, 427, 88.7, 0.0616, 1.12),
    RESNET14("1 1/3", 3, 1.0, 391, 89.0, 0.0613, 1.12),
    RESNET14("1 1", 1, 1.0, 323, 88.9, 0.0708, 2.01),
    {0},
};

const PaperRow paper_table11[] = {
    GPT(11, "1 SGD", "sgd", 1, 1.0, 24, 69.6, 1.9407, 1824.45),
    GPT(11, "1/2 SGD", "sgd", 2, 1.0, 40, 67.1, 1.9033, 1216.30),
    GPT(11, "1/3 SGD", "sgd", 3, 1.0, 44, 69.1, 1.9343, 1013.58),
    GPT(11, "1/4 SGD", "sgd", 4, 1.0, 50, 67.5, 1.9109, 912.23),
    GPT(11, "1 Adam", "adam", 1, 1.0, 18, 65.9, 1.8869, 2432.60),
    GPT(11, "1/2 Adam", "adam", 2, 1.0, 40, 66.3, 1.8924, 1520.38),
    GPT(11, "1/3 Adam", "adam", 3, 1.0, 50, 66.2, 1.8910, 1216.30),
    GPT(11, "1/4 Adam", "adam", 4, 1.0, 60, 66.8, 1.8995, 1064.26),
    {0},
};

/* ---- trained here ---------------------------------------------------------------------------- */

/* clang-format off */

/* Dataset reduction: each submodel sees nine tenths of the data. */
const TrainingKind training_compression = {
    .name = "compression",
    .tables = {9, 10},
    .ways = "full; bcd; bcd x0.9",
    .preset = {
    [PRESET_SMOKE] = {
        {.model = "resnet:depth=8,width=4", .data = "synthetic", .optimizers = "sgd",
         .settings = SMOKE_IMAGES, .sgd = "lr=0.05", .adam = "lr=1e-2"},
        {.model = SMOKE_GPT, .data = "text", .optimizers = "sgd,adam", .settings = SMOKE_WORDS,
         .sgd = "lr=0.1", .adam = "lr=3e-3"},
    },
    [PRESET_LAPTOP] = {
        {.model = "resnet8", .data = "cifar10", .optimizers = "sgd", .settings = LAPTOP_IMAGES,
         .adam = "lr=3e-3"},
        {.model = "resnet8", .data = "synthetic", .instead_of = "cifar10", .optimizers = "sgd",
         .settings = LAPTOP_GENERATED, .adam = "lr=3e-3"},
        {.model = LAPTOP_GPT, .data = "wikitext2:2048", .optimizers = "sgd,adam",
         .settings = LAPTOP_WORDS, .sgd = "clip=1", .adam = "lr=1e-3"},
        {.model = LAPTOP_GPT, .data = "text", .instead_of = "wikitext2:2048",
         .optimizers = "sgd,adam", .settings = LAPTOP_WORDS, .sgd = "clip=1", .adam = "lr=1e-3"},
    },
    [PRESET_GPU] = {
        {.model = "resnet14", .data = "cifar10", .optimizers = "sgd", .settings = "epochs=60"},
        {.model = "gpt2-0.15B", .data = "wikitext2", .optimizers = "sgd,adam",
         .settings = "epochs=6 batch=1"},
    },
    },
};

const TrainingKind training_ufp = {
    .name = "ufp",
    .tables = {11},
    .ways = "full; bcd2; bcd3; bcd4",
    .preset = {
    [PRESET_SMOKE] = {
        {.model = SMOKE_GPT, .data = "text", .optimizers = "sgd,adam", .settings = SMOKE_WORDS,
         .sgd = "lr=0.1", .adam = "lr=3e-3"},
    },
    [PRESET_LAPTOP] = {
        {.model = LAPTOP_GPT, .data = "wikitext2:2048", .optimizers = "sgd,adam",
         .settings = LAPTOP_WORDS, .sgd = "clip=1", .adam = "lr=1e-3"},
        {.model = LAPTOP_GPT, .data = "text", .instead_of = "wikitext2:2048",
         .optimizers = "sgd,adam", .settings = LAPTOP_WORDS, .sgd = "clip=1", .adam = "lr=1e-3"},
    },
    [PRESET_GPU] = {
        {.model = "gpt2-0.15B", .data = "wikitext2", .optimizers = "sgd,adam",
         .settings = "epochs=6 batch=1"},
    },
    },
};
/* clang-format on */
