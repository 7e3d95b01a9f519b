/* What a training costs in dollars, by the published times. */
#include <math.h>
#include <string.h>

#include "paper.h"

enum { SEQUENCE = 1024 }; /* tokens of a published iteration */

enum { FULL, OFFLOAD, A100, BCD = A100 + COST_GPUS - 1, COLUMNS = BCD + MULTIPLIERS };

/* All tokens in iterations of that time on so many GPUs, at that price per GPU and hour. */
static double dollars(const CostSettings *settings, double ms, int gpus, double price) {
    return settings->tokens / SEQUENCE * ms / 3.6e6 * gpus * price;
}

static void add_training(Table *table, const CostSettings *settings, const PaperDistributed *row) {
    const double *price = settings->price;
    const PaperOffload *offload = paper_offload_of(row->model);
    table_row(table, "%s %d/%d", row->model, row->full.nodes, row->full.per_node);
    table_put(table, FULL, dollars(settings, row->full_ms, paper_gpus(row->full), price[0]));
    if (offload)
        table_put(table, OFFLOAD, dollars(settings, offload->offload_ms, offload->gpus, price[0]));
    for (int g = 1; g < COST_GPUS; g++) {
        const PaperOtherGpu *e = paper_other_gpu(cost_gpus[g], row->model);
        if (!e) continue;
        table_put(table, A100 + g - 1,
                  dollars(settings, e->full_ms, paper_gpus(e->gpus), price[g]));
    }
    double bcd = dollars(settings, paper_bcd_ms(row->model), paper_gpus(row->bcd), price[0]);
    for (int m = 0; m < settings->multipliers; m++)
        table_put(table, BCD + m, settings->multiplier[m] * bcd);
}

void paper_add_dollars(Tables *tables, const CostSettings *settings) {
    TableColumn saved[SAVED_COLUMNS],
        columns[COLUMNS] = {
            {"full", "full", "RTX 4090", COLUMN_NUMBER, 0, SOURCE_RECOMPUTED},
            {"offload", "offload", "RTX 4090", COLUMN_NUMBER, 0, SOURCE_RECOMPUTED},
            {"full_a100", "full", "A100", COLUMN_NUMBER, 0, SOURCE_RECOMPUTED},
            {"full_a800", "full", "A800", COLUMN_NUMBER, 0, SOURCE_RECOMPUTED},
        };
    char title[160];
    cost_saved_columns(saved, settings);
    for (int m = 0; m < settings->multipliers; m++) {
        columns[BCD + m] = saved[SAVED_WITH + m];
        columns[BCD + m].kind = COLUMN_NUMBER;
        columns[BCD + m].decimals = 0;
        strcpy(columns[BCD + m].unit, "BCD-1/3");
    }
    snprintf(title, sizeof title,
             "What a training on %.3g tokens costs, in dollars, by published times",
             settings->tokens);
    Table *table =
        tables_add(tables, "dollars", title, "model, N/G", columns, BCD + settings->multipliers);
    strcpy(table->unit, "$");
    table_note(table,
               "An iteration is taken as %d tokens (inferred: the paper does not say); with the "
               "multipliers above the columns, at %.2f, %.2f and %.2f $/h for RTX 4090, A100 and "
               "A800.",
               SEQUENCE, settings->price[0], settings->price[1], settings->price[2]);
    for (const PaperDistributed *row = paper_distributed; row->model; row++)
        add_training(table, settings, row);
}
