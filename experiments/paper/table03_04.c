/* Tables 3 and 4, section 4.4.2: a step with the optimizer offloaded, distributed, and by BCD. */
#include <math.h>
#include <string.h>

#include "paper.h"
#include "steps.h"

/* ---- both tables ----------------------------------------------------------------------------- */

enum { COLUMNS = 6 };
static const TableColumn columns[COLUMNS] = {
    {"gpus", "N/G", "", COLUMN_TEXT, 0, SOURCE_NONE},
    {"published", "published", "ms", COLUMN_NUMBER, 0, SOURCE_PUBLISHED},
    {"roofline", "roofline", "ms", COLUMN_NUMBER, 0, SOURCE_SIMULATED},
    {"roofline_deviation", "off", "", COLUMN_DEVIATION, 1, SOURCE_NONE},
    {"calibrated", "calibrated", "ms", COLUMN_NUMBER, 0, SOURCE_SIMULATED},
    {"calibrated_deviation", "off", "", COLUMN_DEVIATION, 1, SOURCE_NONE},
};

static void put_step(Table *table, const PaperStep *step, double published) {
    put_gpus(table, 0, step->gpus, SOURCE_NONE);
    paper_put_step(table, 1, step, published);
}

static double fraction_of(Table *table, const char *gpu) {
    return 100 * paper_efficiency(table, gpu, SETTING_CALIBRATED)->products[PRECISION_FP32];
}

static void note_settings(Table *table) {
    table_note(
        table,
        "The paper does not state its setting; its numbers fit one micro-batch of 1 x 1024 tokens, "
        "strict fp32, no overlap in the pipeline, attention scores in memory and a backward pass "
        "in one piece, as in Megatron-LM.  \"roofline\": matrix products at %.0f %% of the peak.",
        100 * efficiency_default.products[PRECISION_FP32]);
    table_note(
        table,
        "\"calibrated\": at the fraction with which one published cell per GPU comes out: RTX 4090 "
        "%.1f %% (G-1.6B BCD-1/3), A100 %.1f %%, A800 %.1f %% (G-1.6B full on one).  All other "
        "cells are predictions.",
        fraction_of(table, "rtx4090"), fraction_of(table, "a100"), fraction_of(table, "a800"));
}

/* Compares the published milliseconds per parameter of a LLaMA model and of the GPT on as many
 * GPUs, for full updates and BCD.  Memory of BCD stands for the parameters: it takes 8 bytes of
 * each. */
static void note_llama(Table *table) {
    static const char *const pairs[][2] = {
        {"L-6.0B", "G-5.4B"}, {"L-11B", "G-10B"}, {"L-23B", "G-20B"}};
    double min = INFINITY, max = 0;
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
        double full[2] = {0}, bcd[2] = {0};
        for (int m = 0; m < 2; m++) {
            const PaperDistributed *d = paper_distributed;
            while (strcmp(d->model, pairs[p][m])) d++;
            full[m] = d->full_ms / d->bcd_gib;
            bcd[m] = d->bcd_ms / d->bcd_gib;
        }
        min = fmin(min, fmin(full[0] / full[1], bcd[0] / bcd[1]));
        max = fmax(max, fmax(full[0] / full[1], bcd[0] / bcd[1]));
    }
    table_note(
        table,
        "The published steps of L-6.0B and larger take %.2f to %.2f of the time per parameter "
        "of those of GPT, which the same work at the same rate does not allow.  L-8.0B is not "
        "in Table 8.",
        min, max);
}

static void add_table4(Tables *tables) {
    Table *table =
        tables_add(tables, "table4", "Table 4 and section 4.4.2: a step", "step", columns, COLUMNS);
    for (const PaperDistributed *d = paper_distributed; d->model; d++) {
        PaperStep full = {"rtx4090", d->model, d->full, TIMED_FULL, 1};
        PaperStep bcd = {"rtx4090", d->model, d->bcd, TIMED_BCD, 3};
        table_row(table, "%s full", d->model);
        put_step(table, &full, d->full_ms);
        /* The two full updates of G-10B have the same BCD step. */
        if (d > paper_distributed && strcmp(d[-1].model, d->model) == 0) continue;
        table_row(table, "%s BCD-1/3", d->model);
        put_step(table, &bcd, d->bcd_ms);
    }
    for (const PaperOtherGpu *e = paper_other_gpus; e->model; e++) {
        PaperStep full = {e->gpu, e->model, e->gpus, TIMED_FULL, 1};
        table_row(table, "%s full, %s", e->model, gpu_find(e->gpu)->name);
        put_step(table, &full, e->full_ms);
    }
    note_settings(table);
    note_llama(table);
}

static void add_table3(Tables *tables) {
    Table *table = tables_add(tables, "table3", "Table 3: a step with the optimizer offloaded",
                              "step", columns, COLUMNS);
    for (const PaperOffload *o = paper_offload; o->model; o++) {
        PaperStep step = {"rtx4090", o->model, {1, o->gpus}, TIMED_OFFLOAD, 1};
        table_row(table, "%s offload", o->model);
        put_step(table, &step, o->offload_ms);
    }
    const Efficiency *calibrated = paper_efficiency(table, "rtx4090", SETTING_CALIBRATED);
    table_note(
        table,
        "Adam in host memory: gradients go there during the backward pass, %.1f GB/s per process "
        "(calibrated with G-1.6B), %.0f GB/s per node at most.  It is paid per step, whatever the "
        "number of its micro-batches.",
        1e-9 * calibrated->host_process_rate, 1e-9 * calibrated->host_memory_rate);
}

void paper_add_table3_4(Tables *tables) {
    add_table4(tables);
    add_table3(tables);
}
