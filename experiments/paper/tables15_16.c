/* Tables 15 and 16: a step of BCD against UFP, the unfrozen part; Figure 6 draws them. */
#include <math.h>
#include <string.h>

#include "paper.h"

enum { MIN = 3, MAX = 5 }; /* submodels in these tables */

double timing_flop_ratio(int k, int submodels, bool cached) {
    double sum = 0, up = (submodels - k + 1.0) / submodels;
    if (k) return ((cached ? up : 1) + up + 1.0 / submodels) / 3;
    for (k = 1; k <= submodels; k++) sum += timing_flop_ratio(k, submodels, cached);
    return sum / submodels;
}

/* Returns the published milliseconds at 1/3, scaled by operations alone. */
static double scaled_ms(const char *model, int submodels) {
    double share = timing_flop_ratio(0, submodels, false) / timing_flop_ratio(0, MIN, false);
    return paper_bcd_ms(model) * share;
}

void paper_add_table15_16(Tables *tables) {
    static const TableColumn columns[] = {
        {"published", "published", "ms", COLUMN_NUMBER, 1, SOURCE_PUBLISHED},
        {"roofline", "roofline", "ms", COLUMN_NUMBER, 1, SOURCE_SIMULATED},
        {"roofline_deviation", "off", "", COLUMN_DEVIATION, 1, SOURCE_NONE},
        {"calibrated", "calibrated", "ms", COLUMN_NUMBER, 1, SOURCE_SIMULATED},
        {"calibrated_deviation", "off", "", COLUMN_DEVIATION, 1, SOURCE_NONE},
        {"cached", "cached", "ms", COLUMN_NUMBER, 1, SOURCE_SIMULATED},
        {"flops", "FLOP model", "ms", COLUMN_NUMBER, 1, SOURCE_RECOMPUTED},
        {"flops_deviation", "off", "", COLUMN_DEVIATION, 1, SOURCE_NONE},
    };
    Table *table = tables_add(tables, "tables15and16",
                              "Tables 15 and 16: a step of BCD against UFP, the unfrozen part",
                              "model, UFP", columns, 8);
    for (const PaperStep *step = paper_steps; step->model; step++) {
        if (step->table != 15 && step->table != 16) continue;
        PaperStep cached = *step;
        cached.method = TIMED_CACHED;
        double flops = step->submodels > MIN ? scaled_ms(step->model, step->submodels) : NAN;
        table_row(table, "%s 1/%d", step->model, step->submodels);
        paper_put_step(table, 0, step);
        table_put(table, 5, paper_step_ms(table, &cached, SETTING_CALIBRATED), flops,
                  flops / step->ms - 1);
    }
    table_note(
        table,
        "Means over the submodels; settings as in Table 4.  \"cached\": with the outputs of the "
        "frozen prefix kept (pre-inference), which fits the published times less well.  \"FLOP "
        "model\": the published time at 1/3, times (3/2 + 3/(2M)) / 2.");
}

/* ---- Figure 6: three GPT models, and three LLaMA models -------------------------------------- */

enum { MODELS = 3, COLUMNS = 1 + 2 * MODELS };

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
    const char *last = model[MODELS - 1]; /* the FLOP model is drawn for it */
    for (int submodels = MIN; submodels <= MAX; submodels++) {
        table_row(table, "1/%d", submodels);
        table_put(table, 0, scaled_ms(last, submodels));
        for (int i = 0; i < MODELS; i++)
            paper_put_pair(table, 1 + 2 * i, paper_step(number, model[i], submodels), 1);
    }
    table_note(table,
               "\"FLOP model\": the published time of %s at 1/3, scaled by operations alone.",
               last);
}

void paper_add_figure6(Tables *tables) {
    static const char *const gpt[] = {"G-1.6B", "G-5.4B", "G-10B"}, *const llama[] = {"L-1.5B",
                                                                                      "L-6.0B",
                                                                                      "L-11B"};
    add_figure(tables, 15, gpt, "figure6", "Figure 6: a step against UFP, GPT");
    add_figure(tables, 16, llama, "figure6_llama", "Figure 6: a step against UFP, LLaMA");
}
