/* Tables 5 to 7 (cost) and 12 to 14 (GPU hours): what BCD-1/3 on RTX 4090 saves. */
#include <math.h>
#include <string.h>

#include "../../dist/cluster.h"
#include "paper.h"

const PaperReduction paper_reductions[PAPER_REDUCTIONS + 1] = {
    {5, "rtx4090", "G-1.6B", {1, 2}, {1, 1}, 0.565, 0.804},
    {5, "rtx4090", "G-5.4B", {1, 8}, {1, 4}, 0.301, 0.685},
    {5, "rtx4090", "G-10B", {2, 8}, {1, 8}, -0.028, 0.536},
    {5, "rtx4090", "G-20B", {4, 8}, {2, 8}, 0.294, 0.683},
    {6, "a100", "G-1.6B", {1, 1}, {1, 1}, 0.751, 0.888},
    {6, "a100", "G-5.4B", {1, 2}, {1, 4}, 0.456, 0.755},
    {6, "a100", "G-10B", {1, 4}, {1, 8}, 0.444, 0.749},
    {6, "a100", "G-20B", {1, 8}, {2, 8}, 0.573, 0.808},
    {7, "a800", "G-1.6B", {1, 1}, {1, 1}, 0.611, 0.825},
    {7, "a800", "G-5.4B", {1, 2}, {1, 4}, 0.099, 0.594},
    {7, "a800", "G-10B", {1, 4}, {1, 8}, 0.070, 0.581},
    {7, "a800", "G-20B", {1, 8}, {2, 8}, 0.285, 0.677},
    {12, "rtx4090", "G-1.6B", {0, 0}, {0, 0}, 0.561, 0.802},
    {12, "rtx4090", "G-5.4B", {0, 0}, {0, 0}, 0.133, 0.609},
    {12, "rtx4090", "G-10B", {0, 0}, {0, 0}, -0.028, 0.536},
    {12, "rtx4090", "G-20B", {0, 0}, {0, 0}, 0.294, 0.682},
    {13, "a100", "G-1.6B", {0, 0}, {0, 0}, 0.015, 0.556},
    {13, "a100", "G-5.4B", {0, 0}, {0, 0}, -1.270, -0.024},
    {13, "a100", "G-10B", {0, 0}, {0, 0}, -1.318, -0.045},
    {13, "a100", "G-20B", {0, 0}, {0, 0}, -0.780, 0.197},
    {14, "a800", "G-1.6B", {0, 0}, {0, 0}, 0.064, 0.578},
    {14, "a800", "G-5.4B", {0, 0}, {0, 0}, -1.147, 0.032},
    {14, "a800", "G-10B", {0, 0}, {0, 0}, -1.216, 0.0008},
    {14, "a800", "G-20B", {0, 0}, {0, 0}, -0.705, 0.231},
    {0, NULL, NULL, {0, 0}, {0, 0}, 0, 0},
};

const char *const cost_gpus[COST_GPUS] = {"rtx4090", "a100", "a800"};

const double paper_average_multiplier = 1.39, paper_worst_multiplier = 2.77;

/* ---- recomputed ------------------------------------------------------------------------------ */

bool paper_is_cost(const PaperReduction *reduction) { return reduction->table < 12; }

const PaperReduction *paper_reduction_of(const PaperReduction *reduction, bool cost) {
    const PaperReduction *row = paper_reductions;
    while (paper_is_cost(row) != cost || strcmp(row->gpu, reduction->gpu) ||
           strcmp(row->model, reduction->model))
        row++;
    return row;
}

double paper_time_ratio(const PaperReduction *reduction) {
    const PaperReduction *r = paper_reduction_of(reduction, true);
    return paper_bcd_ms(r->model) * paper_gpus(r->bcd) /
           (paper_full_ms(r->gpu, r->model, r->full) * paper_gpus(r->full));
}

double paper_price_ratio(const PaperReduction *reduction) {
    double price = gpu_find("rtx4090")->dollars_per_hour; /* of section 4.4.1, as all there */
    return paper_is_cost(reduction) ? price / gpu_find(reduction->gpu)->dollars_per_hour : 1;
}

double paper_row_multiplier(const PaperReduction *reduction) {
    return paper_worst_multiplier * (1 - reduction->average) / (1 - reduction->worst);
}

double paper_table_multiplier(void) {
    double row[PAPER_REDUCTIONS];
    for (int i = 0; i < PAPER_REDUCTIONS; i++) row[i] = paper_row_multiplier(&paper_reductions[i]);
    return paper_median(row, PAPER_REDUCTIONS);
}

/* ---- one saving with each multiplier --------------------------------------------------------- */

int cost_saved_columns(TableColumn *columns, const CostSettings *settings) {
    static const char *const names[MULTIPLIERS] = {"tables", "average", "language", "worst",
                                                   "ours"};
    static const TableColumn fixed[SAVED_WITH] = {
        {"published", "published", "", COLUMN_PERCENT, 1, SOURCE_PUBLISHED},
        {"nearest", "nearest", "", COLUMN_TEXT, 0, SOURCE_NONE},
        {"off", "off", "points", COLUMN_NUMBER, 1, SOURCE_NONE},
    };
    for (int c = 0; c < SAVED_WITH; c++) columns[c] = fixed[c];
    for (int m = 0; m < settings->multipliers; m++) {
        TableColumn *column = &columns[SAVED_WITH + m];
        *column =
            (TableColumn){.kind = COLUMN_PERCENT,
                          .decimals = 1,
                          .source = m == MULTIPLIER_OURS ? settings->ours : SOURCE_RECOMPUTED};
        snprintf(column->name, sizeof column->name, "multiplier_%s", names[m]);
        snprintf(column->head, sizeof column->head, "%.4g", settings->multiplier[m]);
        snprintf(column->unit, sizeof column->unit, "%s", names[m]);
    }
    return SAVED_WITH + settings->multipliers;
}

void cost_put_saved(Table *table, int first, const CostSettings *settings, double published,
                    const double saved[MULTIPLIERS]) {
    const double tolerance = 0.015; /* a cell that is farther off follows from none of them */
    int nearest = 0;
    for (int m = 0; m < MULTIPLIER_OURS; m++)
        if (fabs(saved[m] - published) < fabs(saved[nearest] - published)) nearest = m;
    double off = saved[nearest] - published;
    table_put(table, first + SAVED_PUBLISHED, published);
    table_text(table, first + SAVED_NEAREST, SOURCE_NONE, "%s",
               fabs(off) <= tolerance ? table->column[first + SAVED_WITH + nearest].head : "none");
    table_put(table, first + SAVED_OFF, 100 * off);
    table_put_all(table, first + SAVED_WITH, settings->multipliers, saved);
}

/* ---- the six tables -------------------------------------------------------------------------- */

enum { FULL, BCD, IMPLIED, SAVED, COLUMNS = SAVED + SAVED_COLUMNS };

static void add_cell(Table *table, const CostSettings *settings, const PaperReduction *row,
                     bool worst) {
    double published = worst ? row->worst : row->average, saved[MULTIPLIERS];
    double ratio = paper_time_ratio(row) * paper_price_ratio(row);
    const PaperReduction *with_gpus = paper_reduction_of(row, true);
    for (int m = 0; m < MULTIPLIERS; m++) saved[m] = 1 - settings->multiplier[m] * ratio;
    table_row(table, "%s %s", row->model, worst ? "worst" : "avg.");
    put_gpus(table, FULL, with_gpus->full, SOURCE_PUBLISHED);
    put_gpus(table, BCD, with_gpus->bcd, SOURCE_PUBLISHED);
    table_put(table, IMPLIED, (1 - published) / ratio);
    cost_put_saved(table, SAVED, settings, published, saved);
}

/* Adds the table whose first row this is; returns the first row of the next one. */
static const PaperReduction *add_reduction(Tables *tables, const CostSettings *settings,
                                           const PaperReduction *row) {
    TableColumn columns[COLUMNS] = {
        [FULL] = {"full", "full", "N/G", COLUMN_TEXT, 0, SOURCE_PUBLISHED},
        [BCD] = {"bcd", "BCD", "N/G", COLUMN_TEXT, 0, SOURCE_PUBLISHED},
        [IMPLIED] = {"implied", "implied", "B-F", COLUMN_NUMBER, 3, SOURCE_RECOMPUTED},
    };
    char name[48], title[160];
    bool cost = paper_is_cost(row);
    int number = row->table, count = SAVED + cost_saved_columns(columns + SAVED, settings);
    snprintf(name, sizeof name, "table%d", number);
    snprintf(title, sizeof title,
             "Table %d: %s saved by BCD-1/3 on RTX 4090 against a full update on %s", number,
             cost ? "cost" : "GPU hours", gpu_find(row->gpu)->name);
    Table *table = tables_add(tables, name, title, "model", columns, count);
    for (; row->table == number; row++) {
        add_cell(table, settings, row, true);
        add_cell(table, settings, row, false);
    }
    table_note(
        table,
        "Saved: 1 - multiplier x (step x GPUs%s of BCD) / (the same of the full update), "
        "from the published times%s.  nearest: the multiplier whose cell is nearest, none if "
        "all are more than 1.5 points off; implied: the one that would give the published cell.",
        cost ? " x price" : "", cost ? " and the prices of section 4.4.1" : "");
    return row;
}

void paper_add_reductions(Tables *tables, const CostSettings *settings) {
    for (const PaperReduction *row = paper_reductions; row->table;)
        row = add_reduction(tables, settings, row);
}

/* ---- what the six tables imply --------------------------------------------------------------- */

static void add_implied_row(Table *table, const PaperReduction *cost) {
    const PaperReduction *hours = paper_reduction_of(cost, false);
    double ms = paper_full_ms(cost->gpu, cost->model, cost->full), price = paper_price_ratio(cost);
    double by_times = paper_worst_multiplier * paper_time_ratio(cost) * ms;
    table_row(table, "%s %s", cost->gpu, cost->model);
    table_put(table, 0, paper_row_multiplier(cost), paper_row_multiplier(hours),
              (1 - hours->worst) / (1 - cost->worst), 1 / price,
              by_times * price / (1 - cost->worst), by_times / (1 - hours->worst), ms);
}

void paper_add_implied(Tables *tables) {
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
    for (const PaperReduction *row = paper_reductions; paper_is_cost(row); row++)
        add_implied_row(table, row);
    table_note(
        table,
        "multiplier: worst multiplier x (1 - average) / (1 - worst), in which times and prices "
        "cancel.  price ratio: of the GPU over an RTX 4090.  full step: the time of a full update "
        "that gives the worst cells.");
    table_note(table,
               "On RTX 4090 the cells of G-1.6B and G-20B, and that of G-5.4B in Table 5, follow "
               "from other step times than Table 4 prints; Table 6 follows from a slightly lower "
               "price of the RTX 4090, or a higher one of the A100, than section 4.4.1 has.");
}
