/* Table 1: the two cards, next to the data sheets that the simulator uses. */
#include <math.h>
#include <string.h>

#include "../../dist/cluster.h"
#include "paper.h"

enum { FEATURES = 7 };

static const struct {
    const char *feature, *unit;
    double rtx4090, a100; /* NAN: not a single number */
} cards[FEATURES] = {
    {"CUDA cores", "", 16384, 6912},          {"memory", "GB", 24, NAN}, /* A100: "40/80" */
    {"memory bandwidth", "GB/s", 1008, 1555}, {"memory bus", "bit", 384, 5120},
    {"FP32", "TFLOP/s", 82.6, 19.5},          {"tensor cores, FP16", "TFLOP/s", 330, 312},
    {"price", "$/hour", 0.29, 1.20},
};

/* Looks up the same features in gpu_table, which lacks some of them: NAN. */
static void features_of(double value[FEATURES], const char *key) {
    const Gpu *gpu = gpu_find(key);
    const double features[FEATURES] = {NAN,
                                       gpu->memory_bytes / GIB,
                                       gpu->memory_rate / 1e9,
                                       NAN,
                                       gpu->flops[PRECISION_FP32] / 1e12,
                                       gpu->flops[PRECISION_BF16] / 1e12,
                                       gpu->dollars_per_hour};
    memcpy(value, features, sizeof features);
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
    double rtx4090[FEATURES], a100[FEATURES];
    Table *table = tables_add(tables, "table1", "Table 1: the two cards", "feature", columns, 5);
    features_of(rtx4090, "rtx4090");
    features_of(a100, "a100");
    for (int f = 0; f < FEATURES; f++) {
        table_row(table, "%s", cards[f].feature);
        table_text(table, 0, SOURCE_NONE, "%s", cards[f].unit);
        table_put(table, 1, cards[f].rtx4090, rtx4090[f], cards[f].a100, a100[f]);
    }
    table_note(table,
               "Data sheet: the values that the simulator uses (dist/cluster.c), tensor cores for "
               "dense bf16 with float sums; prices from section 4.4.1.  Table 1 has the bandwidth "
               "of the A100 with 40 GB, and the RTX 4090's FP16 rate with FP16 sums.");
}
