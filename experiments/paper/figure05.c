/* Figure 5: memory against UFP, the unfrozen part; and the memory of Tables 9 to 11. */
#include <math.h>
#include <string.h>

#include "paper.h"
#include "trainings.h"

enum { MAX_SUBMODELS = 5, BARS = PAPER_MODELS + 1 };

void paper_add_figure5(Tables *tables) {
    TableColumn bars[BARS] = {
        {"equal_parts", "equal parts", "", COLUMN_PERCENT, 1, SOURCE_CLOSED_FORM}};
    for (int i = 0; i < PAPER_MODELS; i++) {
        TableColumn *column = &bars[i + 1];
        *column = bars[0];
        snprintf(column->head, sizeof column->head, "%s", paper_models[i].model);
        snprintf(column->name, sizeof column->name, "%s", paper_models[i].model);
    }
    Table *table = tables_add(tables, "figure5", "Figure 5: memory against UFP, the unfrozen part",
                              "UFP", bars, BARS);
    table->figure = FIGURE_BARS;
    strcpy(table->axis, "parameters, gradients, state: % of a full update's");
    for (int m = 1; m <= MAX_SUBMODELS; m++) {
        table_row(table, m == 1 ? "1" : "1/%d", m);
        table_put(table, 0, (1 + 3.0 / m) / 4);
        for (int i = 0; i < PAPER_MODELS; i++) {
            const char *model = paper_models[i].model;
            table_put(table, i + 1,
                      paper_memory(table, model, OPTIMIZER_ADAM, m, false).trained /
                          paper_memory(table, model, OPTIMIZER_ADAM, 1, false).closed_form);
        }
    }
    table_note(
        table,
        "Fractions of a full update's bytes.  \"equal parts\": the closed form (1 + 3/M) / 4, "
        "the same for all models; the others: planned with the largest balanced submodel of "
        "whole blocks.  The paper prints no numbers with its Figure 5.");
}

/* ---- Tables 9 to 11 -------------------------------------------------------------------------- */

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
