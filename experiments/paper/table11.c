/* Table 11: GPT-2 in one to four submodels. */
#include "../study/networks.h"
#include "trainings.h"

/* ---- published ------------------------------------------------------------------------------- */

#define GPT(row, opt, m, epochs, printed, loss, mib)                                          \
    {                                                                                         \
        11, row, "gpt2-0.15B", "wikitext2", opt, m, 1.0, epochs, false, SCORE_TEN_PERPLEXITY, \
            printed, loss, mib                                                                \
    }
const PaperRow paper_table11[] = {
    GPT("1 SGD", "sgd", 1, 24, 69.6, 1.9407, 1824.45),
    GPT("1/2 SGD", "sgd", 2, 40, 67.1, 1.9033, 1216.30),
    GPT("1/3 SGD", "sgd", 3, 44, 69.1, 1.9343, 1013.58),
    GPT("1/4 SGD", "sgd", 4, 50, 67.5, 1.9109, 912.23),
    GPT("1 Adam", "adam", 1, 18, 65.9, 1.8869, 2432.60),
    GPT("1/2 Adam", "adam", 2, 40, 66.3, 1.8924, 1520.38),
    GPT("1/3 Adam", "adam", 3, 50, 66.2, 1.8910, 1216.30),
    GPT("1/4 Adam", "adam", 4, 60, 66.8, 1.8995, 1064.26),
    {0},
};

/* ---- trained here ---------------------------------------------------------------------------- */

const TrainingKind training_ufp = {
    .name = "ufp",
    .tables = {11},
    .variant = {{1, 1, NULL}, {2, 1, NULL}, {3, 1, NULL}, {4, 1, NULL}},
    .preset = {[PRESET_SMOKE] = {SMOKE_GPT("2")},
               [PRESET_LAPTOP] = {{LAPTOP_WIKITEXT(LAPTOP_GPT, "sgd,adam")},
                                  LAPTOP_TEXT("sgd,adam")},
               [PRESET_GPU] = {GPU_GPT}},
};
