/* Tables 9 and 10, compression: each submodel sees a fraction of the data.  Table 11, UFP: one to
 * four submodels. */
#include <math.h>
#include <string.h>

#include "../study/networks.h"
#include "paper.h"
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

/* ---- their memory ---------------------------------------------------------------------------- */

static void add_trained_model(Table *table, const PaperRow *row) {
    bool adam = strcmp(row->optimizer, "adam") == 0;
    const PaperRow *full = paper_full(row);
    double k = adam ? 3 : 2, published = row->memory_mib; /* gradients and vectors of state */
    double recomputed = full ? full->memory_mib / (1 + k) * (1 + k / row->submodels) : NAN;
    MemorySums planned = paper_memory(table, row->model, adam ? OPTIMIZER_ADAM : OPTIMIZER_SGD,
                                      row->submodels, false);
    double ours = planned.closed_form / MIB;
    table_row(table, "%d: %s", row->table, row->row);
    table_put(table, 0, published, recomputed, recomputed / published - 1, ours,
              ours / published - 1, planned.trained / MIB);
}

void paper_add_tables9_11(Tables *tables) {
    static const TableColumn columns[] = {
        {"published", "published", "MiB", COLUMN_NUMBER, 2, SOURCE_PUBLISHED},
        {"recomputed", "from its W", "MiB", COLUMN_NUMBER, 2, SOURCE_RECOMPUTED},
        {"recomputed_deviation", "off", "", COLUMN_DEVIATION, 2, SOURCE_NONE},
        {"closed_form", "our model", "MiB", COLUMN_NUMBER, 2, SOURCE_CLOSED_FORM},
        {"closed_form_deviation", "off", "", COLUMN_DEVIATION, 2, SOURCE_NONE},
        {"plan", "planned", "MiB", COLUMN_NUMBER, 2, SOURCE_CLOSED_FORM},
    };
    Table *table = tables_add(tables, "tables9to11",
                              "Tables 9 to 11: parameters, gradients and state of GPT-2 0.15B and "
                              "ResNet-14",
                              "table: row", columns, 6);
    for (int number = 9; number <= 11; number++)
        for (const PaperRow *row = paper_rows(number); row->table; row++)
            add_trained_model(table, row);
    table_note(table,
               "\"from its W\": W (1 + (1 + k)/M) with the W that the table's own full update "
               "implies, k = 2 for Adam, 1 for SGD with momentum.");
    table_note(table,
               "No usual configuration of GPT-2 has the W of the 0.15B one; 16 layers of width 768 "
               "stand in for it.  \"planned\": with the largest balanced submodel.");
}

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
