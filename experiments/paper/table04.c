#include "timing.h"

#include <math.h>
#include <string.h>

#include "../experiment.h"
#include "../study/multiplier.h"

const Practice *timing_practice(const TimingPractice *practice, const char *gpu,
                                PaperSetting setting) {
    const Practice *of = strcmp(gpu, "a100") == 0   ? practice->a100
                         : strcmp(gpu, "a800") == 0 ? practice->a800
                                                    : practice->rtx4090;
    return &of[setting];
}

static int fill_practice(TimingPractice *practice) {
    for (PaperSetting s = 0; s < SETTINGS; s++)
        if (paper_practice(&practice->rtx4090[s], "rtx4090", s) ||
            paper_practice(&practice->a100[s], "a100", s) ||
            paper_practice(&practice->a800[s], "a800", s))
            return -1;
    return 0;
}

/* ---- published steps ----------------------------------------------------------------------------
 */

enum { T_WHERE, T_PUBLISHED, T_ROOFLINE, T_ROOFLINE_OFF, T_SIMULATED, T_OFF, T_FILLED, T_COLUMNS };
static const TableColumn step_columns[T_COLUMNS] = {
    [T_WHERE] = {"gpus", "N/G", "", COLUMN_TEXT, 0},
    [T_PUBLISHED] = {"published", "published", "ms", COLUMN_NUMBER, 0},
    [T_ROOFLINE] = {"roofline", "roofline", "ms", COLUMN_NUMBER, 0},
    [T_ROOFLINE_OFF] = {"roofline_deviation", "off", "", COLUMN_DEVIATION, 1},
    [T_SIMULATED] = {"calibrated", "calibrated", "ms", COLUMN_NUMBER, 0},
    [T_OFF] = {"calibrated_deviation", "off", "", COLUMN_DEVIATION, 1},
    [T_FILLED] = {"filled", "filled", "ms/1k tok.", COLUMN_NUMBER, 0},
};

/* Deviations of the cells that nothing was calibrated with. */
typedef struct {
    double sum[SETTINGS];
    int cells;
} Deviations;

static bool is_calibration(const PaperStep *step) {
    PaperStep used;
    paper_calibration_ms(step->gpu, &used);
    bool offload = step->method == TIMED_OFFLOAD && strcmp(step->gpu, "rtx4090") == 0;
    return strcmp(step->model, used.model) == 0 && paper_gpus(step->gpus) == 1 &&
           (offload || (step->method == used.method && step->submodels == used.submodels));
}

static int put_step(Table *table, const TimingPractice *practice, const PaperStep *step,
                    double published, Deviations *all) {
    static const int column[SETTINGS] = {T_ROOFLINE, T_SIMULATED, T_FILLED};
    double ms[SETTINGS];
    table_text(table, T_WHERE, SOURCE_NONE, "%d/%d", step->gpus.nodes, step->gpus.per_node);
    table_number(table, T_PUBLISHED, published, SOURCE_PUBLISHED);
    for (PaperSetting s = 0; s < SETTINGS; s++) {
        if (paper_step_ms(&ms[s], NULL, step, s, timing_practice(practice, step->gpu, s)))
            return -1;
        table_number(table, column[s], ms[s], SOURCE_SIMULATED);
    }
    table_deviation(table, T_ROOFLINE_OFF, T_ROOFLINE, T_PUBLISHED);
    table_deviation(table, T_OFF, T_SIMULATED, T_PUBLISHED);
    if (is_calibration(step) || isnan(ms[0])) return 0;
    all->cells++;
    for (PaperSetting s = 0; s < SETTING_FILLED; s++) all->sum[s] += fabs(ms[s] / published - 1);
    return 0;
}

static int put_distributed(Table *table, const TimingPractice *practice, Deviations *all) {
    for (size_t i = 0; i < paper_distributed_count; i++) {
        const PaperDistributed *d = &paper_distributed[i];
        PaperStep full = {"rtx4090", d->model, d->full, TIMED_FULL, 1, 0};
        PaperStep bcd = {"rtx4090", d->model, d->bcd, TIMED_BCD, 3, 0};
        table_row(table, "%s full", d->model);
        if (put_step(table, practice, &full, d->full_ms, all)) return -1;
        /* Two full updates of a model have the same BCD row. */
        if (i && strcmp(d[-1].model, d->model) == 0) continue;
        table_row(table, "%s BCD-1/3", d->model);
        if (put_step(table, practice, &bcd, d->bcd_ms, all)) return -1;
    }
    return 0;
}

static int put_elsewhere(Table *table, const TimingPractice *practice, Deviations *all) {
    for (size_t i = 0; i < paper_elsewhere_count; i++) {
        const PaperElsewhere *e = &paper_elsewhere[i];
        PaperStep full = {e->gpu, e->model, e->gpus, TIMED_FULL, 1, 0};
        table_row(table, "%s full, %s", e->model, gpu_find(e->gpu)->name);
        if (put_step(table, practice, &full, e->full_ms, all)) return -1;
    }
    return 0;
}

static int put_offload(Table *table, const TimingPractice *practice, Deviations *all) {
    for (size_t i = 0; i < paper_offload_count; i++) {
        const PaperOffload *o = &paper_offload[i];
        PaperStep step = {"rtx4090", o->model, {1, o->gpus}, TIMED_OFFLOAD, 1, 0};
        table_row(table, "%s offload", o->model);
        if (put_step(table, practice, &step, o->offload_ms, all)) return -1;
    }
    return 0;
}

static void note_deviations(Table *table, const Deviations *all) {
    table_note(table,
               "Mean absolute deviation over the %d cells that nothing was calibrated with: "
               "roofline %.1f %%, calibrated %.1f %%.",
               all->cells, 100 * all->sum[SETTING_ROOFLINE] / all->cells,
               100 * all->sum[SETTING_CALIBRATED] / all->cells);
}

static void note_settings(Table *table, const TimingPractice *p) {
    table_note(
        table,
        "The paper's setting as we read it from its numbers (it does not say): one "
        "micro-batch of 1 x 1024 tokens, strict fp32, no overlap in the pipeline; attention "
        "scores in memory and a backward pass in one piece, as in Megatron-LM.  \"roofline\" "
        "takes %.0f %% of the peak for products.",
        100 * practice_default.products[PRECISION_FP32]);
    table_note(
        table,
        "\"calibrated\" takes the fraction at which one published cell per GPU comes out: RTX "
        "4090 %.1f %% (G-1.6B BCD-1/3), A100 %.1f %%, A800 %.1f %% (G-1.6B full on one).  All "
        "else is prediction.",
        100 * p->rtx4090[SETTING_CALIBRATED].products[PRECISION_FP32],
        100 * p->a100[SETTING_CALIBRATED].products[PRECISION_FP32],
        100 * p->a800[SETTING_CALIBRATED].products[PRECISION_FP32]);
    table_note(
        table,
        "\"filled\": the calibrated machines with this program's zero-bubble schedule and %d "
        "micro-batches a step (BCD on virtual stages), per 1024 tokens; memory is not asked "
        "about (bcd plan does).",
        FILLED_MICRO_BATCHES);
}

int timing_add_steps(Tables *tables, const TimingPractice *practice) {
    Deviations steps = {0}, offloads = {0};
    Table *table = tables_add(tables, "table4", "Table 4 and section 4.4.2: a step", "step",
                              step_columns, T_COLUMNS);
    if (!table || put_distributed(table, practice, &steps) ||
        put_elsewhere(table, practice, &steps))
        return -1;
    note_settings(table, practice);
    note_deviations(table, &steps);
    table_note(
        table,
        "The published LLaMA steps take 0.6 to 0.8 of the time per parameter of GPT ones; the same "
        "work at the same rate cannot give both.  L-8.0B is not in Table 8.");
    table = tables_add(tables, "table3", "Table 3: a step with the optimizer offloaded", "step",
                       step_columns, T_COLUMNS);
    if (!table || put_offload(table, practice, &offloads)) return -1;
    table_note(
        table,
        "Adam in host memory: gradients go there beside the backward pass, %.1f GB/s per "
        "process (calibrated with G-1.6B), %.0f GB/s per node at most.  It is paid per step: "
        "%d micro-batches share it in the filled pipeline.",
        1e-9 * practice->rtx4090[SETTING_CALIBRATED].host_process_rate,
        1e-9 * practice->rtx4090[SETTING_CALIBRATED].host_memory_rate, FILLED_MICRO_BATCHES);
    note_deviations(table, &offloads);
    return 0;
}

int experiment_timing(const Options *options) {
    Tables tables = {0};
    TimingPractice practice;
    double multiplier;
    int failed = multiplier_read(&multiplier, options->multiplier) || fill_practice(&practice);
    if (!failed && isnan(multiplier)) multiplier = paper_average_multiplier;
    failed = failed || timing_add_steps(&tables, &practice) || timing_add_ufp(&tables, &practice) ||
             timing_add_submodels(&tables, &practice) ||
             timing_add_figure4(&tables, &practice, multiplier) ||
             timing_add_figure6(&tables, &practice) || timing_add_offload(&tables, &practice) ||
             timing_add_timelines(&tables, &practice) || timing_measure(&tables, options) ||
             tables_deliver(&tables, options, "timing");
    tables_free(&tables);
    return failed ? -1 : 0;
}
