/* What a training costs in dollars, by published and by simulated times. */
#include <math.h>
#include <string.h>

#include "paper.h"
#include "steps.h"

enum { SEQUENCE = 1024 }; /* tokens of a published iteration */

enum { FULL, OFFLOAD, A100, A800, BCD, COLUMNS = BCD + MULTIPLIERS };

/* An iteration and where it ran; no GPUs: the paper has no such time. */
typedef struct {
    PaperStep step;
    double ms; /* as published */
} Iteration;

/* The trainings of a row of Table 4, by column. */
static void find_iterations(Iteration iteration[BCD + 1], const PaperDistributed *row) {
    const PaperOffload *o = paper_offload_of(row->model);
    iteration[FULL] =
        (Iteration){{"rtx4090", row->model, row->full, TIMED_FULL, 1, 0}, row->full_ms};
    iteration[OFFLOAD] =
        (Iteration){{"rtx4090", row->model, {1, o ? o->gpus : 0}, TIMED_OFFLOAD, 1, 0},
                    o ? o->offload_ms : NAN};
    for (int g = 1; g < COST_GPUS; g++) {
        const PaperElsewhere *e = paper_elsewhere_of(cost_gpus[g], row->model);
        PaperGpus gpus = {1, e ? paper_gpus(e->gpus) : 0};
        iteration[A100 + g - 1] =
            (Iteration){{cost_gpus[g], row->model, gpus, TIMED_FULL, 1, 0}, e ? e->full_ms : NAN};
    }
    iteration[BCD] =
        (Iteration){{"rtx4090", row->model, row->bcd, TIMED_BCD, 3, 0}, paper_bcd_ms(row->model)};
}

static double dollars(const CostSettings *settings, double ms, PaperGpus gpus, double price) {
    return settings->tokens / SEQUENCE * ms / 3.6e6 * paper_gpus(gpus) * price;
}

static void add_training(Table *table, const CostSettings *settings, const PaperDistributed *row,
                         Source source) {
    const double price[BCD + 1] = {settings->price[0], settings->price[0], settings->price[1],
                                   settings->price[2], settings->price[0]};
    Iteration iteration[BCD + 1];
    double cost[BCD + 1];
    Source from[BCD + 1];
    find_iterations(iteration, row);
    for (int i = 0; i <= BCD; i++) {
        double ms = iteration[i].ms;
        if (source == SOURCE_SIMULATED && !isnan(ms))
            ms = paper_step_ms(table, &iteration[i].step, SETTING_CALIBRATED, NULL);
        from[i] = source;
        if (paper_step_source(&iteration[i].step) == SOURCE_PUBLISHED) from[i] = SOURCE_RECOMPUTED;
        cost[i] = dollars(settings, ms, iteration[i].step.gpus, price[i]);
    }
    if (isnan(cost[FULL])) return; /* L-8.0B: not determined */
    table_row(table, "%s %d/%d", row->model, row->full.nodes, row->full.per_node);
    for (int c = 0; c < BCD; c++) table_number(table, c, cost[c], from[c]);
    for (int m = 0; m < settings->multipliers; m++)
        table_number(table, BCD + m, settings->multiplier[m] * cost[BCD],
                     cost_source(settings, m, from[BCD]));
}

static void add_table(Tables *tables, const CostSettings *settings, const char *name,
                      const char *from, Source source) {
    TableColumn saved[SAVED_COLUMNS],
        columns[COLUMNS] = {
            [FULL] = {"full", "full", "RTX 4090", COLUMN_NUMBER, 0, SOURCE_NONE},
            [OFFLOAD] = {"offload", "offload", "RTX 4090", COLUMN_NUMBER, 0, SOURCE_NONE},
            [A100] = {"full_a100", "full", "A100", COLUMN_NUMBER, 0, SOURCE_NONE},
            [A800] = {"full_a800", "full", "A800", COLUMN_NUMBER, 0, SOURCE_NONE},
        };
    char title[160];
    cost_saved_columns(saved, settings);
    for (int m = 0; m < settings->multipliers; m++) {
        columns[BCD + m] = saved[SAVED_WITH + m];
        columns[BCD + m].kind = COLUMN_NUMBER;
        columns[BCD + m].decimals = 0;
        strcpy(columns[BCD + m].unit, "BCD-1/3");
    }
    snprintf(title, sizeof title, "What a training on %.3g tokens costs, in dollars, by %s times",
             settings->tokens, from);
    Table *table =
        tables_add(tables, name, title, "model, N/G", columns, BCD + settings->multipliers);
    strcpy(table->unit, "$");
    table_note(table,
               "An iteration is taken as %d tokens (inferred: the paper does not say); with the "
               "multipliers above the columns, at %.2f, %.2f and %.2f $/h for RTX 4090, A100 and "
               "A800.",
               SEQUENCE, settings->price[0], settings->price[1], settings->price[2]);
    for (const PaperDistributed *row = paper_distributed; row->model; row++)
        add_training(table, settings, row, source);
}

void paper_add_dollars(Tables *tables, const CostSettings *settings) {
    add_table(tables, settings, "dollars", "published", SOURCE_RECOMPUTED);
    add_table(tables, settings, "dollars_simulated", "simulated", SOURCE_SIMULATED);
}
