/* Tables 5 to 7 (cost) and 12 to 14 (GPU hours): what BCD-1/3 on RTX 4090 saves. */
#include <math.h>
#include <string.h>

#include "paper.h"

const PaperReduction paper_reductions[PAPER_REDUCTIONS] = {
    {"rtx4090", "G-1.6B", {1, 2}, {1, 1}, {0.565, 0.561}, {0.804, 0.802}},
    {"rtx4090", "G-5.4B", {1, 8}, {1, 4}, {0.301, 0.133}, {0.685, 0.609}},
    {"rtx4090", "G-10B", {2, 8}, {1, 8}, {-0.028, -0.028}, {0.536, 0.536}},
    {"rtx4090", "G-20B", {4, 8}, {2, 8}, {0.294, 0.294}, {0.683, 0.682}},
    {"a100", "G-1.6B", {1, 1}, {1, 1}, {0.751, 0.015}, {0.888, 0.556}},
    {"a100", "G-5.4B", {1, 2}, {1, 4}, {0.456, -1.270}, {0.755, -0.024}},
    {"a100", "G-10B", {1, 4}, {1, 8}, {0.444, -1.318}, {0.749, -0.045}},
    {"a100", "G-20B", {1, 8}, {2, 8}, {0.573, -0.780}, {0.808, 0.197}},
    {"a800", "G-1.6B", {1, 1}, {1, 1}, {0.611, 0.064}, {0.825, 0.578}},
    {"a800", "G-5.4B", {1, 2}, {1, 4}, {0.099, -1.147}, {0.594, 0.032}},
    {"a800", "G-10B", {1, 4}, {1, 8}, {0.070, -1.216}, {0.581, 0.0008}},
    {"a800", "G-20B", {1, 8}, {2, 8}, {0.285, -0.705}, {0.677, 0.231}},
};

const char *const cost_gpus[COST_GPUS] = {"rtx4090", "a100", "a800"};

const double paper_average_multiplier = 1.39, paper_worst_multiplier = 2.77;

/* ---- recomputed ------------------------------------------------------------------------------ */

double paper_ratio(const PaperReduction *r, PaperSaving what) {
    double times = paper_bcd_ms(r->model) * paper_gpus(r->bcd) /
                   (paper_full_ms(r->gpu, r->model, r->full) * paper_gpus(r->full));
    double prices = gpu_find("rtx4090")->dollars_per_hour / gpu_find(r->gpu)->dollars_per_hour;
    return what == PAPER_COST ? times * prices : times;
}

double paper_row_multiplier(const PaperReduction *r, PaperSaving what) {
    return paper_worst_multiplier * (1 - r->average[what]) / (1 - r->worst[what]);
}

double paper_table_multiplier(void) {
    double cell[PAPER_SAVINGS * PAPER_REDUCTIONS];
    int cells = 0;
    for (int i = 0; i < PAPER_REDUCTIONS; i++)
        for (PaperSaving what = PAPER_COST; what < PAPER_SAVINGS; what++)
            cell[cells++] = paper_row_multiplier(&paper_reductions[i], what);
    return paper_median(cell, cells);
}

/* ---- one saving with each multiplier --------------------------------------------------------- */

enum { PUBLISHED, NEAREST, OFF, WITH };

int cost_saved_columns(TableColumn *columns, const CostSettings *settings) {
    static const char *const names[MULTIPLIERS] = {"tables", "average", "language", "worst",
                                                   "ours"};
    static const TableColumn fixed[WITH] = {
        {"published", "published", "", COLUMN_PERCENT, 1, SOURCE_PUBLISHED},
        {"nearest", "nearest", "", COLUMN_TEXT, 0, SOURCE_NONE},
        {"off", "off", "points", COLUMN_NUMBER, 1, SOURCE_NONE},
    };
    memcpy(columns, fixed, sizeof fixed);
    for (int m = 0; m < settings->multipliers; m++) {
        TableColumn *column = &columns[WITH + m];
        *column =
            (TableColumn){.kind = COLUMN_PERCENT,
                          .decimals = 1,
                          .source = m == MULTIPLIER_OURS ? settings->ours : SOURCE_RECOMPUTED};
        snprintf(column->name, sizeof column->name, "multiplier_%s", names[m]);
        snprintf(column->head, sizeof column->head, "%.4g", settings->multiplier[m]);
        snprintf(column->unit, sizeof column->unit, "%s", names[m]);
    }
    return WITH + settings->multipliers;
}

void cost_put_saved(Table *table, int first, const CostSettings *settings, double published,
                    const double saved[MULTIPLIERS]) {
    const double tolerance = 0.015; /* a cell that is farther off follows from none of them */
    int nearest = 0;
    for (int m = 0; m < MULTIPLIER_OURS; m++)
        if (fabs(saved[m] - published) < fabs(saved[nearest] - published)) nearest = m;
    double off = saved[nearest] - published;
    table_put(table, first + PUBLISHED, published);
    table_text(table, first + NEAREST, SOURCE_NONE, "%s",
               fabs(off) <= tolerance ? table->column[first + WITH + nearest].head : "none");
    table_put(table, first + OFF, 100 * off);
    table_put_all(table, first + WITH, settings->multipliers, saved);
}

/* ---- the six tables -------------------------------------------------------------------------- */

enum { FULL, BCD, IMPLIED, SAVED, COLUMNS = SAVED + SAVED_COLUMNS };

static void add_cell(Table *table, const CostSettings *settings, const PaperReduction *row,
                     PaperSaving what, bool worst) {
    double published = worst ? row->worst[what] : row->average[what], saved[MULTIPLIERS];
    double ratio = paper_ratio(row, what);
    for (int m = 0; m < MULTIPLIERS; m++) saved[m] = 1 - settings->multiplier[m] * ratio;
    table_row(table, "%s %s", row->model, worst ? "worst" : "avg.");
    put_gpus(table, FULL, row->full, SOURCE_PUBLISHED);
    put_gpus(table, BCD, row->bcd, SOURCE_PUBLISHED);
    table_put(table, IMPLIED, (1 - published) / ratio);
    cost_put_saved(table, SAVED, settings, published, saved);
}

static void add_reduction(Tables *tables, const CostSettings *settings, PaperSaving what, int g) {
    TableColumn columns[COLUMNS] = {
        [FULL] = {"full", "full", "N/G", COLUMN_TEXT, 0, SOURCE_PUBLISHED},
        [BCD] = {"bcd", "BCD", "N/G", COLUMN_TEXT, 0, SOURCE_PUBLISHED},
        [IMPLIED] = {"implied", "implied", "B-F", COLUMN_NUMBER, 3, SOURCE_RECOMPUTED},
    };
    bool cost = what == PAPER_COST;
    int number = (cost ? 5 : 12) + g, count = SAVED + cost_saved_columns(columns + SAVED, settings);
    Text title = text_of("Table %d: %s saved by BCD-1/3 on RTX 4090 against a full update on %s",
                         number, cost ? "cost" : "GPU hours", gpu_find(cost_gpus[g])->name);
    Table *table =
        tables_add(tables, text_of("table%d", number).text, title.text, "model", columns, count);
    for (int r = 0; r < PAPER_REDUCTIONS; r++)
        for (int worst = 1; worst >= 0 && !strcmp(paper_reductions[r].gpu, cost_gpus[g]); worst--)
            add_cell(table, settings, &paper_reductions[r], what, worst);
    table_note(
        table,
        "Saved: 1 - multiplier x (step x GPUs%s of BCD) / (the same of the full update), "
        "from the published times%s.  nearest: the multiplier whose cell is nearest, none if "
        "all are more than 1.5 points off; implied: the one that would give the published cell.",
        cost ? " x price" : "", cost ? " and the prices of section 4.4.1" : "");
}

void paper_add_reductions(Tables *tables, const CostSettings *settings) {
    for (PaperSaving what = PAPER_COST; what < PAPER_SAVINGS; what++)
        for (int g = 0; g < COST_GPUS; g++) add_reduction(tables, settings, what, g);
}
