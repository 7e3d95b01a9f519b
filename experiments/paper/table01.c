/* GPUs, and what they cost to rent. */
#include <math.h>
#include <string.h>

#include "../../dist/cluster.h"
#include "cost.h"

/* ---- Table 1 ---------------------------------------------------------------------------------
 */

/* The same feature in our table of GPUs; NAN where that has none. */
static double of_gpu(const Gpu *gpu, const char *feature) {
    if (strcmp(feature, "memory") == 0) return gpu->memory_bytes / (1024.0 * 1024 * 1024);
    if (strcmp(feature, "memory bandwidth") == 0) return gpu->memory_rate / 1e9;
    if (strcmp(feature, "FP32") == 0) return gpu->flops[PRECISION_FP32] / 1e12;
    if (strcmp(feature, "tensor cores, FP16") == 0) return gpu->flops[PRECISION_BF16] / 1e12;
    if (strcmp(feature, "price") == 0) return gpu->dollars_per_hour;
    return NAN;
}

int cost_add_cards(Tables *tables) {
    enum { UNIT, RTX, RTX_HERE, A100, A100_HERE, COLUMNS };
    static const TableColumn columns[COLUMNS] = {
        [UNIT] = {"unit", "unit", "", COLUMN_TEXT, 0},
        [RTX] = {"rtx4090_published", "RTX 4090", "Table 1", COLUMN_NUMBER, DECIMALS_FREE},
        [RTX_HERE] = {"rtx4090", "RTX 4090", "data sheet", COLUMN_NUMBER, DECIMALS_FREE},
        [A100] = {"a100_published", "A100", "Table 1", COLUMN_NUMBER, DECIMALS_FREE},
        [A100_HERE] = {"a100", "A100 80GB", "data sheet", COLUMN_NUMBER, DECIMALS_FREE},
    };
    const Gpu *rtx = gpu_find("rtx4090"), *a100 = gpu_find("a100");
    Table *table =
        tables_add(tables, "table1", "Table 1: the two cards", "feature", columns, COLUMNS);
    if (!table || !rtx || !a100) return -1;
    for (size_t i = 0; i < paper_card_count; i++) {
        const PaperCard *card = &paper_cards[i];
        table_row(table, "%s", card->feature);
        table_text(table, UNIT, SOURCE_NONE, "%s", card->unit);
        table_number(table, RTX, card->rtx4090, SOURCE_PUBLISHED);
        table_number(table, RTX_HERE, of_gpu(rtx, card->feature), SOURCE_GIVEN);
        table_number(table, A100, card->a100, SOURCE_PUBLISHED);
        table_number(table, A100_HERE, of_gpu(a100, card->feature), SOURCE_GIVEN);
    }
    table_note(
        table,
        "Data sheet: what this program's simulator takes (dist/cluster.c), tensor cores in bf16 "
        "with float sums, dense; prices from section 4.4.1.  Table 1 has the A100's 40 GB "
        "bandwidth, and the RTX 4090's FP16 rate with FP16 sums.");
    return 0;
}

/* ---- prices ----------------------------------------------------------------------------------
 */

enum { P_RTX, P_A100, P_A800, P_RATIO_A100, P_RATIO_A800, P_SAVED_A100, P_SAVED_A800, P_COLUMNS };
static const TableColumn price_columns[P_COLUMNS] = {
    [P_RTX] = {"rtx4090", "RTX 4090", "$/h", COLUMN_NUMBER, 2},
    [P_A100] = {"a100", "A100", "$/h", COLUMN_NUMBER, 2},
    [P_A800] = {"a800", "A800", "$/h", COLUMN_NUMBER, 2},
    [P_RATIO_A100] = {"ratio_a100", "A100", "/ RTX 4090", COLUMN_NUMBER, 2},
    [P_RATIO_A800] = {"ratio_a800", "A800", "/ RTX 4090", COLUMN_NUMBER, 2},
    [P_SAVED_A100] = {"saved_a100", "saved", "vs A100", COLUMN_PERCENT, 1},
    [P_SAVED_A800] = {"saved_a800", "saved", "vs A800", COLUMN_PERCENT, 1},
};

/* G-10B, the model whose savings the abstract quotes. */
static double saved_at(const char *gpu, double ratio, double multiplier) {
    for (size_t i = 0; i < paper_reduction_count; i++) {
        const PaperReduction *row = &paper_reductions[i];
        if (paper_is_cost(row) && !strcmp(row->gpu, gpu) && !strcmp(row->model, "G-10B"))
            return 1 - multiplier * paper_time_ratio(row) / ratio;
    }
    return NAN;
}

static void add_price(Table *table, const char *who, const double price[COST_GPUS],
                      double multiplier, Source source) {
    table_row(table, "%s", who);
    for (int g = 0; g < COST_GPUS; g++) table_number(table, P_RTX + g, price[g], source);
    for (int g = 1; g < COST_GPUS; g++) {
        double ratio = price[g] / price[0];
        table_number(table, P_RATIO_A100 + g - 1, ratio, SOURCE_RECOMPUTED);
        table_number(table, P_SAVED_A100 + g - 1, saved_at(cost_gpus[g], ratio, multiplier),
                     SOURCE_RECOMPUTED);
    }
}

int cost_add_prices(Tables *tables, const CostSettings *settings) {
    double multiplier = settings->multiplier[MULTIPLIER_TABLES];
    Table *table = tables_add(tables, "prices",
                              "Section 4.4.1 and appendix A.4: rents, and what they make of G-10B",
                              "from", price_columns, P_COLUMNS);
    if (!table) return -1;
    for (size_t i = 0; i < paper_price_count; i++) {
        const PaperPrices *p = &paper_prices[i];
        add_price(table, p->who, (const double[COST_GPUS]){p->rtx4090, p->a100, p->a800},
                  multiplier, SOURCE_PUBLISHED);
    }
    if (settings->priced) add_price(table, "--price", settings->price, multiplier, SOURCE_GIVEN);
    table_note(
        table,
        "saved: cost of G-10B by BCD-1/3 on RTX 4090 with the tables' multiplier %.3f, against "
        "a full update on the other GPU.",
        multiplier);
    return 0;
}
