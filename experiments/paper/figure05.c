/* Figure 5, and the memory columns of Tables 9 to 11. */
#include <math.h>
#include <string.h>

#include "../study/paper.h"
#include "memory.h"
#include "published.h"

enum { MOST_SUBMODELS = 5 };

/* ---- Figure 5 --------------------------------------------------------------------------------
 */

enum { FIGURE5_MODELS = 8, FIGURE5_COLUMNS = FIGURE5_MODELS + 1 };

static int fill_figure5(Table *table, Model *const *models) {
    StageSettings settings = memory_plain_settings(OPTIMIZER_ADAM);
    for (int m = 1; m <= MOST_SUBMODELS; m++) {
        table_row(table, m == 1 ? "1" : "1/%d", m);
        table_number(table, 0, (1 + 3.0 / m) / 4, SOURCE_CLOSED_FORM);
        for (int i = 0; i < FIGURE5_MODELS; i++) {
            MemorySums sums;
            if (memory_sums(&sums, models[i], &settings, m)) return -1;
            double full = memory_closed_form(models[i], &settings.optimizer, PRECISION_FP32, 1);
            table_number(table, i + 1, sums.trained / full, SOURCE_CLOSED_FORM);
        }
    }
    table_note(table,
               "Of a full update's bytes.  \"equal parts\": the closed form (1 + 3/M) / 4, the "
               "same for all; the models: their largest balanced submodel of whole blocks.  The "
               "paper draws its Figure 5 without printing numbers.");
    return 0;
}

int memory_add_figure5(Tables *tables) {
    TableColumn columns[FIGURE5_COLUMNS] = {{"equal_parts", "equal parts", "", COLUMN_PERCENT, 1}};
    Model *models[FIGURE5_MODELS] = {NULL};
    int failed = 0;
    for (int i = 0; i < FIGURE5_MODELS && !failed; i++) {
        TableColumn *column = &columns[i + 1];
        snprintf(column->head, sizeof column->head, "%s", paper_models[i].model);
        snprintf(column->name, sizeof column->name, "%s", paper_models[i].model);
        column->kind = COLUMN_PERCENT;
        column->decimals = 1;
        models[i] = model_create(paper_models[i].model);
        failed = !models[i];
    }
    Table *table =
        failed ? NULL
               : tables_add(tables, "figure5", "Figure 5: memory against UFP, the part that trains",
                            "UFP", columns, FIGURE5_COLUMNS);
    if (table) {
        table->figure = FIGURE_BARS;
        strcpy(table->axis, "parameters, gradients, state: % of a full update's");
        failed = fill_figure5(table, models);
    }
    for (int i = 0; i < FIGURE5_MODELS; i++) model_free(models[i]);
    return table && !failed ? 0 : -1;
}

/* ---- Tables 9 to 11 --------------------------------------------------------------------------
 */

enum { S_PUBLISHED, S_OWN, S_OWN_OFF, S_OURS, S_OURS_OFF, S_PLAN, S_COLUMNS };
static const TableColumn small_columns[S_COLUMNS] = {
    [S_PUBLISHED] = {"published", "published", "MiB", COLUMN_NUMBER, 2},
    [S_OWN] = {"recomputed", "from its W", "MiB", COLUMN_NUMBER, 2},
    [S_OWN_OFF] = {"recomputed_deviation", "off", "", COLUMN_DEVIATION, 2},
    [S_OURS] = {"closed_form", "our model", "MiB", COLUMN_NUMBER, 2},
    [S_OURS_OFF] = {"closed_form_deviation", "off", "", COLUMN_DEVIATION, 2},
    [S_PLAN] = {"plan", "planned", "MiB", COLUMN_NUMBER, 2},
};

static int add_small(Table *table, const PaperRow *row) {
    bool adam = strcmp(row->optimizer, "adam") == 0;
    StageSettings settings = memory_plain_settings(adam ? OPTIMIZER_ADAM : OPTIMIZER_SGD);
    const PaperRow *full = paper_full(row);
    double k = 1 + optimizer_state_vectors(&settings.optimizer);
    MemorySums planned;
    Model *model = model_create(row->model);
    if (!model) return -1;
    double ours = memory_closed_form(model, &settings.optimizer, PRECISION_FP32, row->submodels);
    int failed = memory_sums(&planned, model, &settings, row->submodels);
    table_row(table, "%d: %s", row->table, row->row);
    table_number(table, S_PUBLISHED, row->memory_mib, SOURCE_PUBLISHED);
    if (full)
        table_number(table, S_OWN, full->memory_mib / (1 + k) * (1 + k / row->submodels),
                     SOURCE_RECOMPUTED);
    table_number(table, S_OURS, ours / BYTES_MIB, SOURCE_CLOSED_FORM);
    table_number(table, S_PLAN, planned.trained / BYTES_MIB, SOURCE_CLOSED_FORM);
    table_deviation(table, S_OWN_OFF, S_OWN, S_PUBLISHED);
    table_deviation(table, S_OURS_OFF, S_OURS, S_PUBLISHED);
    model_free(model);
    return failed;
}

int memory_add_small_models(Tables *tables) {
    Table *table = tables_add(tables, "tables9to11",
                              "Tables 9 to 11: parameters, gradients and state of GPT-2 0.15B and "
                              "ResNet-14",
                              "table: row", small_columns, S_COLUMNS);
    if (!table) return -1;
    for (size_t r = 0; r < paper_row_count; r++)
        if (!isnan(paper_rows[r].memory_mib) && add_small(table, &paper_rows[r])) return -1;
    table_note(table,
               "\"from its W\": W (1 + k/M) with the W that the table's own full update implies, k "
               "= 3 for Adam, 2 for SGD with momentum.");
    table_note(table,
               "The W of the 0.15B GPT-2 belongs to no natural configuration; 16 layers x 768 "
               "stand for it.  \"planned\": the largest balanced submodel.");
    return 0;
}
