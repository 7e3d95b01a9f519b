/* Tables 5 to 7 and 12 to 14 once more: what their cells imply about the numbers they came from,
 * and the savings from simulated step times. */
#include <math.h>
#include <string.h>

#include "paper.h"
#include "steps.h"

/* ---- implied --------------------------------------------------------------------------------- */

static void add_implied_row(Table *table, const PaperReduction *cost) {
    const PaperReduction *hours = paper_reduction_of(cost, false);
    double ms = paper_full_ms(cost->gpu, cost->model, cost->full), price = paper_price_ratio(cost);
    double by_times = paper_worst_multiplier * paper_time_ratio(cost) * ms;
    table_row(table, "%s %s", cost->gpu, cost->model);
    table_put(table, 0, paper_row_multiplier(cost), paper_row_multiplier(hours),
              (1 - hours->worst) / (1 - cost->worst), 1 / price,
              by_times * price / (1 - cost->worst), by_times / (1 - hours->worst), ms);
}

void paper_add_implied(Tables *tables, const CostSettings *settings) {
    static const TableColumn columns[] = {
        {"multiplier_cost", "multiplier", "by cost", COLUMN_NUMBER, 3, SOURCE_RECOMPUTED},
        {"multiplier_hours", "multiplier", "by hours", COLUMN_NUMBER, 3, SOURCE_RECOMPUTED},
        {"price_implied", "price ratio", "implied", COLUMN_NUMBER, 2, SOURCE_RECOMPUTED},
        {"price_published", "price ratio", "4.4.1", COLUMN_NUMBER, 2, SOURCE_RECOMPUTED},
        {"full_ms_cost", "full step", "ms by cost", COLUMN_NUMBER, 0, SOURCE_RECOMPUTED},
        {"full_ms_hours", "full step", "ms by hours", COLUMN_NUMBER, 0, SOURCE_RECOMPUTED},
        {"full_ms", "full step", "ms printed", COLUMN_NUMBER, 0, SOURCE_PUBLISHED},
    };
    Table *table =
        tables_add(tables, "implied",
                   "What the cells of Tables 5 to 7 and 12 to 14 imply about the numbers "
                   "they came from",
                   "GPU, model", columns, 7);
    (void)settings;
    for (const PaperReduction *row = paper_reductions; paper_is_cost(row); row++)
        add_implied_row(table, row);
    table_note(
        table,
        "multiplier: worst multiplier x (1 - average) / (1 - worst), in which times and prices "
        "cancel.  price ratio: of the GPU to an RTX 4090.  full step: the time of a full "
        "update with which the worst cells come out.");
    table_note(
        table,
        "On RTX 4090 the cells of G-1.6B and G-20B, and that of G-5.4B in Table 5, follow "
        "from other step times than Table 4 prints; Table 6 from a slightly cheaper RTX 4090 "
        "or dearer A100 than section 4.4.1.");
}

/* ---- simulated ------------------------------------------------------------------------------- */

enum { PUBLISHED = 3, WITH = PUBLISHED + 2, COLUMNS = WITH + MULTIPLIERS };

static void add_simulated_row(Table *table, const CostSettings *settings,
                              const PaperReduction *row) {
    const PaperReduction *r = paper_reduction_of(row, true);
    PaperGpus timed = paper_timed_gpus(r->gpu, r->model, r->full);
    PaperStep full = {r->gpu, r->model, timed, TIMED_FULL, 1, 0};
    PaperStep bcd = {"rtx4090", r->model, r->bcd, TIMED_BCD, 3, 0};
    double full_ms = paper_step_ms(table, &full, SETTING_CALIBRATED, NULL);
    double bcd_ms = paper_step_ms(table, &bcd, SETTING_CALIBRATED, NULL);
    double hours = bcd_ms / full_ms * paper_gpus(r->bcd) / paper_gpus(r->full);
    double ratio = hours * paper_price_ratio(row);
    table_row(table, "%s %s", row->gpu, row->model);
    table_put(table, 0, full_ms, bcd_ms, hours / paper_time_ratio(row) - 1, row->worst,
              row->average);
    Source from_full = paper_step_source(&full), from_bcd = paper_step_source(&bcd);
    bool known = from_full == SOURCE_PUBLISHED && from_bcd == SOURCE_PUBLISHED;
    table_number(table, 0, full_ms, from_full);
    table_number(table, 1, bcd_ms, from_bcd);
    for (int m = 0; m < settings->multipliers; m++)
        table_number(table, WITH + m, 1 - settings->multiplier[m] * ratio,
                     cost_source(settings, m, known ? SOURCE_RECOMPUTED : SOURCE_SIMULATED));
}

static void add_simulated(Tables *tables, const CostSettings *settings, bool cost) {
    TableColumn saved[SAVED_COLUMNS],
        columns[COLUMNS] = {
            {"full_ms", "full", "ms", COLUMN_NUMBER, 0, SOURCE_SIMULATED},
            {"bcd3_ms", "BCD-1/3", "ms", COLUMN_NUMBER, 0, SOURCE_SIMULATED},
            {"ratio_deviation", "ratio off", "", COLUMN_DEVIATION, 1, SOURCE_NONE},
            {"worst_published", "saved", "worst", COLUMN_PERCENT, 1, SOURCE_PUBLISHED},
            {"average_published", "saved", "average", COLUMN_PERCENT, 1, SOURCE_PUBLISHED},
        };
    cost_saved_columns(saved, settings);
    memcpy(columns + WITH, saved + SAVED_WITH, (size_t)settings->multipliers * sizeof *saved);
    Table *table =
        tables_add(tables, cost ? "simulated_cost" : "simulated_hours",
                   cost ? "Tables 5 to 7 from simulated times: cost saved by BCD-1/3 on RTX 4090"
                        : "Tables 12 to 14 from simulated times: GPU hours saved by BCD-1/3 on RTX "
                          "4090",
                   "against", columns, WITH + settings->multipliers);
    for (const PaperReduction *row = paper_reductions; row->table; row++)
        if (paper_is_cost(row) == cost) add_simulated_row(table, settings, row);
    table_note(table,
               "Steps as bcd experiment timing simulates them in the paper's setting: on each GPU "
               "one published time of G-1.6B (of BCD on RTX 4090, else of the full update) tells "
               "which part of the peak is reached, the other times are predictions.  "
               "ratio off: of BCD-1/3 to the full update, against the published times.%s",
               cost ? "  Prices of section 4.4.1." : "");
}

void paper_add_simulated(Tables *tables, const CostSettings *settings) {
    add_simulated(tables, settings, true);
    add_simulated(tables, settings, false);
}
