/* Figure 4: training time by method. */
#include <math.h>
#include <string.h>

#include "paper.h"
#include "steps.h"

enum { OFFLOAD = 0, FULL = 2, BCD = 4, COLUMNS = 6 };

static void add_model(Table *table, const PaperDistributed *d, double multiplier) {
    const PaperOffload *o = paper_offload_of(d->model);
    PaperStep full = {"rtx4090", d->model, d->full, TIMED_FULL, 1};
    PaperStep bcd = {"rtx4090", d->model, d->bcd, TIMED_BCD, 3};
    PaperStep offload = {"rtx4090", d->model, {1, o ? o->gpus : 0}, TIMED_OFFLOAD, 1};
    table_row(table, "%s", d->model);
    paper_put_pair(table, FULL, &full, d->full_ms, 1);
    paper_put_pair(table, BCD, &bcd, d->bcd_ms, multiplier);
    if (o) paper_put_pair(table, OFFLOAD, &offload, o->offload_ms, 1);
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
    for (const PaperDistributed *d = paper_distributed; d->model; d++) {
        bool again = d > paper_distributed && strcmp(d[-1].model, d->model) == 0;
        if (!again) add_model(table, d, multiplier);
    }
    table_note(
        table,
        "Pairs of published times (Tables 3 and 4) and simulated ones, calibrated as in Table 4.  "
        "BCD runs on half of the GPUs; its steps times the B-F multiplier %.3g (--multiplier), so "
        "that the bars compare whole trainings.",
        multiplier);
}
