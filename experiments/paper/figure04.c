/* Figure 4: training time by method. */
#include <math.h>
#include <string.h>

#include "paper.h"

enum { OFFLOAD = 0, FULL = 2, BCD = 4, COLUMNS = 6 };

static void add_model(Table *table, const PaperStep *full, double multiplier) {
    const PaperStep *offload = paper_step(3, full->model, 1);
    table_row(table, "%s", full->model);
    paper_put_pair(table, FULL, full, 1);
    paper_put_pair(table, BCD, paper_step(4, full->model, 3), multiplier);
    if (offload) paper_put_pair(table, OFFLOAD, offload, 1);
}

void paper_add_figure4(Tables *tables, double multiplier) {
    static const TableColumn columns[COLUMNS] = {
        {"offload", "offload", "ms", COLUMN_NUMBER, 0, SOURCE_PUBLISHED},
        {"offload_simulated", "offload, sim.", "ms", COLUMN_NUMBER, 0, SOURCE_SIMULATED},
        {"distributed", "distributed", "ms", COLUMN_NUMBER, 0, SOURCE_PUBLISHED},
        {"distributed_simulated", "distrib., sim.", "ms", COLUMN_NUMBER, 0, SOURCE_SIMULATED},
        {"bcd", "BCD x B-F", "ms", COLUMN_NUMBER, 0, SOURCE_RECOMPUTED},
        {"bcd_simulated", "BCD x B-F, sim.", "ms", COLUMN_NUMBER, 0, SOURCE_SIMULATED},
    };
    Table *table = tables_add(tables, "figure4", "Figure 4: training time by method", "model",
                              columns, COLUMNS);
    table->figure = FIGURE_BARS;
    snprintf(table->axis, sizeof table->axis, "ms a step, BCD x %.3g", multiplier);
    for (const PaperStep *step = paper_steps; step->model; step++)
        if (step == paper_step(4, step->model, 1)) add_model(table, step, multiplier);
    table_note(
        table,
        "Pairs of published times (Tables 3 and 4) and simulated ones, calibrated as in Table 4.  "
        "BCD runs on half of the GPUs; its steps times the B-F multiplier %.3g (--multiplier), so "
        "that the bars compare whole trainings.",
        multiplier);
}
