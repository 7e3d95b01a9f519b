/* Tables 3 and 4, section 4.4.2: a step with the optimizer offloaded, distributed, and by BCD;
 * Figure 4 draws them. */
#include <math.h>
#include <string.h>

#include "paper.h"

enum { COLUMNS = 6 };
static const TableColumn columns[COLUMNS] = {
    {"gpus", "N/G", "", COLUMN_TEXT, 0, SOURCE_NONE},
    {"published", "published", "ms", COLUMN_NUMBER, 0, SOURCE_PUBLISHED},
    {"roofline", "roofline", "ms", COLUMN_NUMBER, 0, SOURCE_SIMULATED},
    {"roofline_deviation", "off", "", COLUMN_DEVIATION, 1, SOURCE_NONE},
    {"calibrated", "calibrated", "ms", COLUMN_NUMBER, 0, SOURCE_SIMULATED},
    {"calibrated_deviation", "off", "", COLUMN_DEVIATION, 1, SOURCE_NONE},
};

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
        const char *llama = pairs[p][0], *gpt = pairs[p][1];
        double size = paper_model(llama)->bcd_gib / paper_model(gpt)->bcd_gib;
        for (int submodels = 1; submodels <= 3; submodels += 2) {
            double ms = paper_step(4, llama, submodels)->ms / paper_step(4, gpt, submodels)->ms;
            min = fmin(min, ms / size);
            max = fmax(max, ms / size);
        }
    }
    table_note(
        table,
        "The published steps of L-6.0B and larger take %.2f to %.2f of the time per parameter "
        "of those of GPT, which the same work at the same rate does not allow.  L-8.0B is not "
        "in Table 8.",
        min, max);
}

/* Adds a row for each step of a published table: "G-10B BCD-1/3", "G-10B full, A100 80GB". */
static void add_steps(Table *table, int number) {
    for (const PaperStep *s = paper_steps; s->model; s++) {
        if (s->table != number) continue;
        bool other = strcmp(s->gpu, "rtx4090") != 0;
        table_row(table, "%s %s%s%s", s->model,
                  s->method == TIMED_FULL  ? "full"
                  : s->method == TIMED_BCD ? "BCD-1/3"
                                           : "offload",
                  other ? ", " : "", other ? gpu_find(s->gpu)->name : "");
        put_gpus(table, 0, s->gpus, SOURCE_NONE);
        paper_put_step(table, 1, s);
    }
}

void paper_add_table3_4(Tables *tables) {
    Table *table4 =
        tables_add(tables, "table4", "Table 4 and section 4.4.2: a step", "step", columns, COLUMNS);
    add_steps(table4, 4);
    note_settings(table4);
    note_llama(table4);
    Table *table3 = tables_add(tables, "table3", "Table 3: a step with the optimizer offloaded",
                               "step", columns, COLUMNS);
    add_steps(table3, 3);
    const Efficiency *calibrated = paper_efficiency(table3, "rtx4090", SETTING_CALIBRATED);
    table_note(
        table3,
        "Adam in host memory: gradients go there during the backward pass, %.1f GB/s per process "
        "(calibrated with G-1.6B), %.0f GB/s per node at most.  It is paid per step, whatever the "
        "number of its micro-batches.",
        1e-9 * calibrated->host_process_rate, 1e-9 * calibrated->host_memory_rate);
}

/* ---- Figure 4: training time by method ------------------------------------------------------- */

enum { OFFLOAD = 0, FULL = 2, BCD = 4, BARS = 6 };

static void add_model(Table *table, const PaperStep *full, double multiplier) {
    const PaperStep *offload = paper_step(3, full->model, 1);
    table_row(table, "%s", full->model);
    paper_put_pair(table, FULL, full, 1);
    paper_put_pair(table, BCD, paper_step(4, full->model, 3), multiplier);
    if (offload) paper_put_pair(table, OFFLOAD, offload, 1);
}

void paper_add_figure4(Tables *tables, double multiplier) {
    static const TableColumn bars[BARS] = {
        {"offload", "offload", "ms", COLUMN_NUMBER, 0, SOURCE_PUBLISHED},
        {"offload_simulated", "offload, sim.", "ms", COLUMN_NUMBER, 0, SOURCE_SIMULATED},
        {"distributed", "distributed", "ms", COLUMN_NUMBER, 0, SOURCE_PUBLISHED},
        {"distributed_simulated", "distrib., sim.", "ms", COLUMN_NUMBER, 0, SOURCE_SIMULATED},
        {"bcd", "BCD x B-F", "ms", COLUMN_NUMBER, 0, SOURCE_RECOMPUTED},
        {"bcd_simulated", "BCD x B-F, sim.", "ms", COLUMN_NUMBER, 0, SOURCE_SIMULATED},
    };
    Table *table =
        tables_add(tables, "figure4", "Figure 4: training time by method", "model", bars, BARS);
    table->figure = FIGURE_BARS;
    snprintf(table->axis, sizeof table->axis, "ms a step, BCD x %.3g", multiplier);
    for (const PaperStep *step = paper_steps; step->model; step++)
        if (step == paper_step(4, step->model, 1)) add_model(table, step, multiplier);
    table_note(
        table,
        "Pairs of published times (Tables 3 and 4) and simulated ones, calibrated as in Table 4.  "
        "BCD runs on half of the GPUs; its steps times the B-F multiplier %.3g (--multiplier), so "
        "that the bars compare whole trainings.",
        multiplier);
}
