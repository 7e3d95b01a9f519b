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
    [PRESET_SMOKE] = {SMOKE_IMAGES("sgd"), SMOKE_WORDS},
    [PRESET_LAPTOP] = {LAPTOP_IMAGES("sgd"), LAPTOP_WORDS("sgd,adam")},
    [PRESET_GPU] = {GPU_IMAGES("resnet14", "cifar10", "sgd", "epochs=60"), GPU_WORDS},
    },
};

const TrainingKind training_ufp = {
    .name = "ufp",
    .tables = {11},
    .ways = "full; bcd2; bcd3; bcd4",
    .preset = {
    [PRESET_SMOKE] = {SMOKE_WORDS},
    [PRESET_LAPTOP] = {LAPTOP_WORDS("sgd,adam")},
    [PRESET_GPU] = {GPU_WORDS},
    },
};
/* clang-format on */
