/* Figure 6: a step against UFP, of three GPT models and of three LLaMA models. */
#include <math.h>
#include <string.h>

#include "paper.h"
#include "steps.h"

enum { MODELS = 3, COLUMNS = 1 + 2 * MODELS };

/* The FLOP model is drawn for the last of the models. */
static void add_row(Table *table, const PaperUfp *ufp, int submodels) {
    double of_third =
        timing_flop_ratio(0, submodels, false) / timing_flop_ratio(0, PAPER_MIN_UFP, false);
    table_row(table, "1/%d", submodels);
    table_put(table, 0, ufp[MODELS - 1].ms[0] * of_third);
    for (int i = 0; i < MODELS; i++) {
        PaperStep step = {"rtx4090", ufp[i].model, {1, ufp[i].gpus}, TIMED_BCD, submodels};
        paper_put_pair(table, 1 + 2 * i, &step, ufp[i].ms[submodels - PAPER_MIN_UFP], 1);
    }
}

static void name_column(TableColumn *column, const char *model, bool simulated) {
    *column =
        (TableColumn){.unit = "ms", .source = simulated ? SOURCE_SIMULATED : SOURCE_PUBLISHED};
    snprintf(column->name, sizeof column->name, "%s%s", model, simulated ? "_simulated" : "");
    for (char *c = column->name; *c; c++)
        if (*c == '-' || *c == '.') *c = '_';
    snprintf(column->head, sizeof column->head, "%s%s", model, simulated ? " sim." : "");
}

static void add_figure(Tables *tables, const PaperUfp *ufp, const char *name, const char *title) {
    TableColumn columns[COLUMNS] = {
        {"flops", "FLOP model", "ms", COLUMN_NUMBER, 0, SOURCE_RECOMPUTED}};
    for (int i = 0; i < 2 * MODELS; i++) name_column(&columns[1 + i], ufp[i / 2].model, i % 2);
    Table *table = tables_add(tables, name, title, "UFP", columns, COLUMNS);
    table->figure = FIGURE_LINES;
    strcpy(table->axis, "ms per iteration");
    for (int submodels = PAPER_MIN_UFP; submodels <= PAPER_MAX_UFP; submodels++)
        add_row(table, ufp, submodels);
    table_note(table,
               "\"FLOP model\": the published time of %s at 1/3, scaled by operations alone.",
               ufp[MODELS - 1].model);
}

void paper_add_figure6(Tables *tables) {
    add_figure(tables, paper_ufp, "figure6", "Figure 6: a step against UFP, GPT");
    add_figure(tables, paper_ufp + MODELS, "figure6_llama", "Figure 6: a step against UFP, LLaMA");
}
