/* Tables 5 to 7 and 12 to 14, cell by cell. */
#include <math.h>
#include <string.h>

#include "../../dist/cluster.h"
#include "cost.h"

enum { FULL, BCD, IMPLIED, SAVED, COLUMNS = SAVED + SAVED_COLUMNS };

/* Price of an RTX 4090 over that of `gpu`, by section 4.4.1. */
static double price_ratio(const char *gpu) { return paper_price("rtx4090") / paper_price(gpu); }

/* What a BCD training costs, or takes in GPU hours, over a full one, for each unit of the
 * multiplier. */
static double ratio_of(const PaperReduction *row) {
    return paper_time_ratio(row) * (paper_is_cost(row) ? price_ratio(row->gpu) : 1);
}

static void add_cell(Table *table, const CostSettings *settings, const PaperReduction *row,
                     bool worst) {
    double published = worst ? row->worst : row->average, ratio = ratio_of(row);
    double saved[MULTIPLIERS];
    PaperGpus full = paper_reduction_full(row), bcd = paper_reduction_bcd(row);
    for (int m = 0; m < MULTIPLIERS; m++) saved[m] = 1 - settings->multiplier[m] * ratio;
    table_row(table, "%s %s", row->model, worst ? "worst" : "avg.");
    table_text(table, FULL, SOURCE_PUBLISHED, "%d/%d", full.nodes, full.per_node);
    table_text(table, BCD, SOURCE_PUBLISHED, "%d/%d", bcd.nodes, bcd.per_node);
    cost_put_saved(table, SAVED, settings, published, saved);
    table_number(table, IMPLIED, (1 - published) / ratio, SOURCE_RECOMPUTED);
}

static int add_reduction(Tables *tables, const CostSettings *settings, int number,
                         const PaperReduction *first) {
    TableColumn columns[COLUMNS] = {
        [FULL] = {"full", "full", "N/G", COLUMN_TEXT, 0},
        [BCD] = {"bcd", "BCD", "N/G", COLUMN_TEXT, 0},
        [IMPLIED] = {"implied", "implied", "B-F", COLUMN_NUMBER, 3},
    };
    char name[48], title[160];
    const Gpu *gpu = gpu_find(first->gpu);
    if (!gpu) return -1;
    int count = SAVED + cost_saved_columns(columns + SAVED, settings);
    snprintf(name, sizeof name, "table%d", number);
    snprintf(title, sizeof title,
             "Table %d: %s saved by BCD-1/3 on RTX 4090 against a full update "
             "on %s",
             number, paper_is_cost(first) ? "cost" : "GPU hours", gpu->name);
    Table *table = tables_add(tables, name, title, "model", columns, count);
    if (!table) return -1;
    for (size_t i = 0; i < paper_reduction_count; i++) {
        const PaperReduction *row = &paper_reductions[i];
        if (row->table != number) continue;
        add_cell(table, settings, row, true);
        add_cell(table, settings, row, false);
    }
    table_note(table,
               "Saved: 1 - multiplier x (step x GPUs%s of BCD) / (the same of the full update), "
               "from the published times%s.  nearest: the multiplier whose cell comes nearest, "
               "none if all are "
               "more than 1.5 points off; implied: the one that would give the published cell.",
               paper_is_cost(first) ? " x price" : "",
               paper_is_cost(first) ? " and the prices of section 4.4.1" : "");
    return 0;
}

int cost_add_reductions(Tables *tables, const CostSettings *settings) {
    int last = 0;
    for (size_t i = 0; i < paper_reduction_count; i++) {
        const PaperReduction *row = &paper_reductions[i];
        if (row->table != last && add_reduction(tables, settings, row->table, row)) return -1;
        last = row->table;
    }
    return 0;
}

/* ---- what the cells imply --------------------------------------------------------------------
 */

enum {
    I_COST_MULTIPLIER,
    I_HOURS_MULTIPLIER,
    I_PRICE,
    I_PRICE_PUBLISHED,
    I_MS_COST,
    I_MS_HOURS,
    I_MS,
    I_COLUMNS
};
static const TableColumn implied_columns[I_COLUMNS] = {
    [I_COST_MULTIPLIER] = {"multiplier_cost", "multiplier", "by cost", COLUMN_NUMBER, 3},
    [I_HOURS_MULTIPLIER] = {"multiplier_hours", "multiplier", "by hours", COLUMN_NUMBER, 3},
    [I_PRICE] = {"price_implied", "price ratio", "implied", COLUMN_NUMBER, 2},
    [I_PRICE_PUBLISHED] = {"price_published", "price ratio", "4.4.1", COLUMN_NUMBER, 2},
    [I_MS_COST] = {"full_ms_cost", "full step", "ms by cost", COLUMN_NUMBER, 0},
    [I_MS_HOURS] = {"full_ms_hours", "full step", "ms by hours", COLUMN_NUMBER, 0},
    [I_MS] = {"full_ms", "full step", "ms printed", COLUMN_NUMBER, 0},
};

static const PaperReduction *hours_row(const PaperReduction *cost) {
    for (size_t i = 0; i < paper_reduction_count; i++) {
        const PaperReduction *row = &paper_reductions[i];
        if (!paper_is_cost(row) && !strcmp(row->gpu, cost->gpu) && !strcmp(row->model, cost->model))
            return row;
    }
    return cost;
}

static void add_implied_row(Table *table, const PaperReduction *cost) {
    const PaperReduction *hours = hours_row(cost);
    double ms = paper_full_ms(cost->gpu, cost->model, cost->full);
    double by_times = paper_worst_multiplier * paper_time_ratio(cost) * ms;
    table_row(table, "%s %s", cost->gpu, cost->model);
    table_number(table, I_COST_MULTIPLIER, paper_row_multiplier(cost), SOURCE_RECOMPUTED);
    table_number(table, I_HOURS_MULTIPLIER, paper_row_multiplier(hours), SOURCE_RECOMPUTED);
    table_number(table, I_PRICE, (1 - hours->worst) / (1 - cost->worst), SOURCE_RECOMPUTED);
    table_number(table, I_PRICE_PUBLISHED, 1 / price_ratio(cost->gpu), SOURCE_RECOMPUTED);
    table_number(table, I_MS_COST, by_times * price_ratio(cost->gpu) / (1 - cost->worst),
                 SOURCE_RECOMPUTED);
    table_number(table, I_MS_HOURS, by_times / (1 - hours->worst), SOURCE_RECOMPUTED);
    table_number(table, I_MS, ms, SOURCE_PUBLISHED);
}

int cost_add_implied(Tables *tables) {
    Table *table =
        tables_add(tables, "implied",
                   "What the cells of Tables 5 to 7 and 12 to 14 imply about the numbers "
                   "they came from",
                   "GPU, model", implied_columns, I_COLUMNS);
    if (!table) return -1;
    for (size_t i = 0; i < paper_reduction_count; i++)
        if (paper_is_cost(&paper_reductions[i])) add_implied_row(table, &paper_reductions[i]);
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
    return 0;
}
