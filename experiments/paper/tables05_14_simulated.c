/* The savings of Tables 5 to 7 and 12 to 14 once more, from simulated step times. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost.h"
#include "times.h"

enum {
    FULL,
    BCD,
    RATIO_OFF,
    WORST_PUBLISHED,
    AVERAGE_PUBLISHED,
    WITH,
    COLUMNS = WITH + MULTIPLIERS
};

/* Of one row of paper_reductions. */
typedef struct {
    double full_ms, bcd_ms;
} Steps;

static int simulate_steps(Steps *steps, const PaperReduction *row) {
    PaperGpus full = paper_timed_gpus(row->gpu, row->model, paper_reduction_full(row));
    PaperGpus bcd = paper_reduction_bcd(row);
    return timing_simulated_ms(&steps->full_ms, row->gpu, row->model, full, 1) ||
                   timing_simulated_ms(&steps->bcd_ms, "rtx4090", row->model, bcd, 3)
               ? -1
               : 0;
}

static int make_columns(TableColumn columns[COLUMNS], const CostSettings *settings) {
    static const TableColumn fixed[WITH] = {
        [FULL] = {"full_ms", "full", "ms", COLUMN_NUMBER, 0},
        [BCD] = {"bcd3_ms", "BCD-1/3", "ms", COLUMN_NUMBER, 0},
        [RATIO_OFF] = {"ratio_deviation", "ratio off", "", COLUMN_DEVIATION, 1},
        [WORST_PUBLISHED] = {"worst_published", "saved", "worst", COLUMN_PERCENT, 1},
        [AVERAGE_PUBLISHED] = {"average_published", "saved", "average", COLUMN_PERCENT, 1},
    };
    TableColumn saved[SAVED_COLUMNS];
    cost_saved_columns(saved, settings);
    memcpy(columns, fixed, sizeof fixed);
    memcpy(columns + WITH, saved + SAVED_WITH, (size_t)settings->multipliers * sizeof *saved);
    return WITH + settings->multipliers;
}

static void add_row(Table *table, const CostSettings *settings, const PaperReduction *row,
                    const Steps *steps) {
    PaperGpus full = paper_reduction_full(row), bcd = paper_reduction_bcd(row);
    double gpus = (double)paper_gpus(bcd) / paper_gpus(full);
    double price = paper_is_cost(row) ? paper_price("rtx4090") / paper_price(row->gpu) : 1;
    double times = steps->bcd_ms / steps->full_ms, ratio = times * gpus * price;
    table_row(table, "%s %s", row->gpu, row->model);
    table_number(table, FULL, steps->full_ms, SOURCE_SIMULATED);
    table_number(table, BCD, steps->bcd_ms, SOURCE_SIMULATED);
    table_number(table, RATIO_OFF, times * gpus / paper_time_ratio(row) - 1, SOURCE_NONE);
    table_number(table, WORST_PUBLISHED, row->worst, SOURCE_PUBLISHED);
    table_number(table, AVERAGE_PUBLISHED, row->average, SOURCE_PUBLISHED);
    for (int m = 0; m < settings->multipliers; m++)
        table_number(table, WITH + m, 1 - settings->multiplier[m] * ratio, SOURCE_SIMULATED);
}

static int add_table(Tables *tables, const CostSettings *settings, const Steps *steps, bool cost) {
    TableColumn columns[COLUMNS];
    int count = make_columns(columns, settings);
    Table *table =
        tables_add(tables, cost ? "simulated_cost" : "simulated_hours",
                   cost ? "Tables 5 to 7 from simulated times: cost saved by BCD-1/3 on RTX 4090"
                        : "Tables 12 to 14 from simulated times: GPU hours saved by BCD-1/3 on RTX "
                          "4090",
                   "against", columns, count);
    if (!table) return -1;
    for (size_t i = 0; i < paper_reduction_count; i++)
        if (paper_is_cost(&paper_reductions[i]) == cost)
            add_row(table, settings, &paper_reductions[i], &steps[i]);
    table_note(table,
               "Steps as bcd experiment timing simulates them in the paper's setting: on each GPU "
               "one published time of G-1.6B (of BCD on RTX 4090, else of the full update) tells "
               "which part of the peak is reached, the other times are predictions.  "
               "ratio off: of BCD-1/3 to the full update, against the published times.%s",
               cost ? "  Prices of section 4.4.1." : "");
    return 0;
}

int cost_add_simulated(Tables *tables, const CostSettings *settings) {
    Steps *steps = calloc(paper_reduction_count, sizeof *steps);
    int failed = steps ? 0 : error_set("cost: out of memory");
    for (size_t i = 0; i < paper_reduction_count && !failed; i++)
        failed = simulate_steps(&steps[i], &paper_reductions[i]);
    failed = failed || add_table(tables, settings, steps, true) ||
             add_table(tables, settings, steps, false);
    free(steps);
    return failed ? -1 : 0;
}
