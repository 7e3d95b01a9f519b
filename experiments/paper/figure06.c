/* Figure 6: a step against UFP, of three GPT models and of three LLaMA models. */
#include <math.h>
#include <string.h>

#include "paper.h"

enum { MODELS = 3, COLUMNS = 1 + 2 * MODELS };

/* The FLOP model is drawn for the last of the models. */
static void add_row(Table *table, int number, const char *const model[MODELS], int submodels) {
    double of_third =
        timing_flop_ratio(0, submodels, false) / timing_flop_ratio(0, PAPER_MIN_UFP, false);
    table_row(table, "1/%d", submodels);
    table_put(table, 0, paper_bcd_ms(model[MODELS - 1]) * of_third);
    for (int i = 0; i < MODELS; i++)
        paper_put_pair(table, 1 + 2 * i, paper_step(number, model[i], submodels), 1);
}

static void name_column(TableColumn *column, const char *model, bool simulated) {
    *column =
        (TableColumn){.unit = "ms", .source = simulated ? SOURCE_SIMULATED : SOURCE_PUBLISHED};
    snprintf(column->name, sizeof column->name, "%s%s", model, simulated ? "_simulated" : "");
    for (char *c = column->name; *c; c++)
        if (*c == '-' || *c == '.') *c = '_';
    snprintf(column->head, sizeof column->head, "%s%s", model, simulated ? " sim." : "");
}

static void add_figure(Tables *tables, int number, const char *const model[MODELS],
                       const char *name, const char *title) {
    TableColumn columns[COLUMNS] = {
        {"flops", "FLOP model", "ms", COLUMN_NUMBER, 0, SOURCE_RECOMPUTED}};
    for (int i = 0; i < 2 * MODELS; i++) name_column(&columns[1 + i], model[i / 2], i % 2);
    Table *table = tables_add(tables, name, title, "UFP", columns, COLUMNS);
    table->figure = FIGURE_LINES;
    strcpy(table->axis, "ms per iteration");
    for (int submodels = PAPER_MIN_UFP; submodels <= PAPER_MAX_UFP; submodels++)
        add_row(table, number, model, submodels);
    table_note(table,
               "\"FLOP model\": the published time of %s at 1/3, scaled by operations alone.",
               model[MODELS - 1]);
}

void paper_add_figure6(Tables *tables) {
    static const char *const gpt[] = {"G-1.6B", "G-5.4B", "G-10B"}, *const llama[] = {"L-1.5B",
                                                                                      "L-6.0B",
                                                                                      "L-11B"};
    add_figure(tables, 15, gpt, "figure6", "Figure 6: a step against UFP, GPT");
    add_figure(tables, 16, llama, "figure6_llama", "Figure 6: a step against UFP, LLaMA");
}
