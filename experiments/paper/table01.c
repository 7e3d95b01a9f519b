/* Table 1: the two cards, next to the data sheets that the simulator uses; section 4.4.1 and
 * appendix A.4: prices of rented GPUs, and what G-10B saves with each. */
#include <math.h>
#include <string.h>

#include "paper.h"

/* Adds a row with two published values, each followed by that of the data sheet; NAN: not a single
 * number, or not in gpu_table. */
static void add_feature(Table *table, const char *feature, const char *unit, double rtx4090,
                        double rtx4090_sheet, double a100, double a100_sheet) {
    table_row(table, "%s", feature);
    table_text(table, 0, SOURCE_NONE, "%s", unit);
    table_put(table, 1, rtx4090, rtx4090_sheet, a100, a100_sheet);
}

void paper_add_table1(Tables *tables) {
    static const TableColumn columns[] = {
        {"unit", "unit", "", COLUMN_TEXT, 0, SOURCE_NONE},
        {"rtx4090_published", "RTX 4090", "Table 1", COLUMN_NUMBER, DECIMALS_FREE,
         SOURCE_PUBLISHED},
        {"rtx4090", "RTX 4090", "data sheet", COLUMN_NUMBER, DECIMALS_FREE, SOURCE_GIVEN},
        {"a100_published", "A100", "Table 1", COLUMN_NUMBER, DECIMALS_FREE, SOURCE_PUBLISHED},
        {"a100", "A100 80GB", "data sheet", COLUMN_NUMBER, DECIMALS_FREE, SOURCE_GIVEN},
    };
    const Gpu *r = gpu_find("rtx4090"), *a = gpu_find("a100");
    const double *r_flops = r->flops, *a_flops = a->flops;
    Table *t = tables_add(tables, "table1", "Table 1: the two cards", "feature", columns, 5);
    add_feature(t, "CUDA cores", "", 16384, NAN, 6912, NAN);
    /* The A100 has "40/80". */
    add_feature(t, "memory", "GB", 24, r->memory_bytes / GIB, NAN, a->memory_bytes / GIB);
    add_feature(t, "memory bandwidth", "GB/s", 1008, r->memory_rate / 1e9, 1555,
                a->memory_rate / 1e9);
    add_feature(t, "memory bus", "bit", 384, NAN, 5120, NAN);
    add_feature(t, "FP32", "TFLOP/s", 82.6, r_flops[PRECISION_FP32] / 1e12, 19.5,
                a_flops[PRECISION_FP32] / 1e12);
    add_feature(t, "tensor cores, FP16", "TFLOP/s", 330, r_flops[PRECISION_BF16] / 1e12, 312,
                a_flops[PRECISION_BF16] / 1e12);
    add_feature(t, "price", "$/hour", 0.29, r->dollars_per_hour, 1.20, a->dollars_per_hour);
    table_note(t,
               "Data sheet: the values that the simulator uses (dist/cluster.c), tensor cores for "
               "dense bf16 with float sums; prices from section 4.4.1.  Table 1 has the bandwidth "
               "of the A100 with 40 GB, and the RTX 4090's FP16 rate with FP16 sums.");
}

/* ---- rents ----------------------------------------------------------------------------------- */

/* Dollars per GPU and hour of appendix A.4, in the order of cost_gpus; NAN: not offered.  gpu_table
 * has those of section 4.4.1. */
enum { OFFERS = 5 };
static const struct {
    const char *who;
    double price[COST_GPUS];
} offers[OFFERS] = {
    {"AutoDL Cloud", {0.31, NAN, 0.88}},    {"Parallel Technology", {0.50, 2.25, NAN}},
    {"AnyGPU", {0.40, NAN, NAN}},           {"AI Galaxy Cloud", {0.19, 1.12, NAN}},
    {"Hengyuan Cloud", {0.22, 1.39, 1.25}},
};

/* Returns the fraction saved for G-10B, the model whose savings the abstract quotes, when the other
 * GPU costs `ratio` times as much as an RTX 4090. */
static double saved_at(const char *gpu, double ratio, double multiplier) {
    const PaperReduction *row = paper_reductions;
    while (strcmp(row->gpu, gpu) || strcmp(row->model, "G-10B")) row++;
    return 1 - multiplier * paper_ratio(row, PAPER_HOURS) / ratio;
}

enum { PRICE, RATIO = PRICE + COST_GPUS, SAVED = RATIO + COST_GPUS - 1 };

static void add_offer(Table *table, const char *who, const double price[COST_GPUS],
                      double multiplier, Source source) {
    table_row(table, "%s", who);
    for (int g = 0; g < COST_GPUS; g++) table_number(table, PRICE + g, price[g], source);
    for (int g = 1; g < COST_GPUS; g++) {
        double ratio = price[g] / price[0];
        table_put(table, RATIO + g - 1, ratio);
        table_put(table, SAVED + g - 1, saved_at(cost_gpus[g], ratio, multiplier));
    }
}

void paper_add_prices(Tables *tables, const CostSettings *settings) {
    static const TableColumn columns[] = {
        {"rtx4090", "RTX 4090", "$/h", COLUMN_NUMBER, 2, SOURCE_PUBLISHED},
        {"a100", "A100", "$/h", COLUMN_NUMBER, 2, SOURCE_PUBLISHED},
        {"a800", "A800", "$/h", COLUMN_NUMBER, 2, SOURCE_PUBLISHED},
        {"ratio_a100", "A100", "/ RTX 4090", COLUMN_NUMBER, 2, SOURCE_RECOMPUTED},
        {"ratio_a800", "A800", "/ RTX 4090", COLUMN_NUMBER, 2, SOURCE_RECOMPUTED},
        {"saved_a100", "saved", "vs A100", COLUMN_PERCENT, 1, SOURCE_RECOMPUTED},
        {"saved_a800", "saved", "vs A800", COLUMN_PERCENT, 1, SOURCE_RECOMPUTED},
    };
    double multiplier = settings->multiplier[MULTIPLIER_TABLES];
    Table *table = tables_add(tables, "prices",
                              "Section 4.4.1 and appendix A.4: rents, and what they make of G-10B",
                              "from", columns, SAVED + COST_GPUS - 1);
    double section[COST_GPUS];
    for (int g = 0; g < COST_GPUS; g++) section[g] = gpu_find(cost_gpus[g])->dollars_per_hour;
    add_offer(table, "section 4.4.1", section, multiplier, SOURCE_PUBLISHED);
    for (int o = 0; o < OFFERS; o++)
        add_offer(table, offers[o].who, offers[o].price, multiplier, SOURCE_PUBLISHED);
    if (settings->priced) add_offer(table, "--price", settings->price, multiplier, SOURCE_GIVEN);
    table_note(table,
               "saved: by G-10B with BCD-1/3 on RTX 4090 and the tables' multiplier %.3f, against "
               "the cost of a full update on the other GPU.",
               multiplier);
}
