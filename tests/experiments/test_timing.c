/* Simulated times of published steps: what must come out whatever the machines reach; and the
 * tables of `bcd experiment timing`. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "../../experiments/paper/paper.h"
#include "../../experiments/train/bench.h"
#include "../../ref/base/error.h"
#include "../leak.h"
#include "cli.h"
#include "tables_sample.h"

/* The cell that a GPU's fraction is found from comes out; it is a fraction of the peak. */
static void calibrated_cell_comes_out(void) {
    static const char *const gpus[] = {"rtx4090", "a100", "a800"};
    for (int g = 0; g < 3; g++) {
        Table table = {0};
        const PaperStep *step = paper_calibration(gpus[g]);
        const Efficiency *efficiency = paper_efficiency(&table, gpus[g], SETTING_CALIBRATED);
        if (!CHECK(step && !table.failed, "%s", error_message())) continue;
        double fraction = efficiency->products[PRECISION_FP32];
        CHECK(fraction > 0.1 && fraction < 0.8, "%s reaches %g of its peak", gpus[g], fraction);
        double ms = paper_step_ms(&table, step, SETTING_CALIBRATED);
        CHECK(!table.failed, "%s", error_message());
        CHECK(fabs(ms / step->ms - 1) < 1e-5, "%s: %g ms, published %g", gpus[g], ms, step->ms);
    }
    Table none = {0};
    PaperStep unknown = {4, "h200", "G-10B", {1, 1}, TIMED_FULL, 1, NAN};
    CHECK(isnan(paper_step_ms(&none, &unknown, SETTING_CALIBRATED)) && none.failed &&
              strstr(error_message(), "no published times on h200"),
          "the paper has no H200");
}

/* Without communication and overlap a step by BCD takes its theoretical share of a full update. */
static void steps_in_theory(void) {
    PaperStep step = {4, "rtx4090", "G-10B", {1, 1}, TIMED_FULL, 1, NAN};
    Table table = {0};
    double full = paper_step_ms(&table, &step, SETTING_ROOFLINE);
    for (int cached = 0; cached < 2; cached++) {
        step.method = cached ? TIMED_CACHED : TIMED_BCD;
        step.submodels = 3;
        double share = paper_step_ms(&table, &step, SETTING_ROOFLINE) / full;
        CHECK(!table.failed, "%s", error_message());
        CHECK(fabs(share - (cached ? 5.0 / 9 : 2.0 / 3)) < 0.05, "cached %d: %g of full", cached,
              share);
    }
}

/* The times of a step are divided among the blocks without loss. */
static void costs_add_up(void) {
    enum { PARTS = 3, STEP_MS = 40 };
    Bench bench;
    Options o;
    options_defaults(&o);
    CHECK(options_set_all(&o, "model=resnet:depth=8,width=2 limit=12 batch=12 submodels=2") == 0,
          "%s", error_message());
    double step_ms;
    if (CHECK(
            bench_open(&bench, &o, true) == 0 &&
                bench_steps(&bench, 0, (BenchPace){.min_steps = 1, .max_steps = 1}, &step_ms) == 0,
            "%s", error_message())) {
        const Model *m = bench.setup.model;
        BlockCost cost[8];
        double passes = 0, update = 0;
        for (int b = 0; b < m->blocks; b++) bench.min_times[b] = (BlockTimes){{1, 2, 3}};
        bench.min_update_ms = 7;
        bench_costs(cost, &bench, PARTS, STEP_MS);
        for (int b = 0; b < m->blocks; b++) {
            for (int pass = 0; pass < PASSES; pass++) passes += PARTS * cost[b].pass_s[pass];
            update += cost[b].update_s;
            CHECK((cost[b].update_s > 0) == bench.active[b], "block %d", b);
            /* 12 images in 3 parts, in fp32 */
            CHECK(cost[b].out_bytes == 16.0 * (double)shape_count(m->value[m->block[b].out].shape),
                  "block %d: %g bytes", b, cost[b].out_bytes);
        }
        CHECK(fabs(update - 7e-3) < 1e-12 && fabs(passes + update - 1e-3 * STEP_MS) < 1e-12,
              "updates %g s, passes %g s", update, passes);
        CHECK(cost[1].pass_s[PASS_WEIGHT_GRADIENT] == 1e-3, "a part of a pass");
    }
    bench_close(&bench);
}

static void unknown_models_are_left_out(void) {
    Table table = {0};
    PaperStep step = *paper_step(4, "L-8.0B", 1);
    double ms = paper_step_ms(&table, &step, SETTING_CALIBRATED);
    CHECK(!table.failed && isnan(ms), "L-8.0B takes %g ms", ms);
}

static void theory_in_letters(void) {
    static const struct {
        int k, parts;
        double plain, cached;
    } rows[] = {{1, 3, 0.778, 0.778}, {2, 3, 0.667, 0.556}, {3, 3, 0.556, 0.333},
                {0, 3, 0.667, 0.556}, {0, 4, 0.625, 0.5},   {0, 5, 0.6, 0.467}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK(fabs(timing_flop_ratio(rows[i].k, rows[i].parts, false) - rows[i].plain) < 5e-4,
              "submodel %d of %d", rows[i].k, rows[i].parts);
        CHECK(fabs(timing_flop_ratio(rows[i].k, rows[i].parts, true) - rows[i].cached) < 5e-4,
              "submodel %d of %d, cached", rows[i].k, rows[i].parts);
    }
}

/* ---- the experiment -------------------------------------------------------------------------- */

/* Where one more of something must cost more, or less. */
static void check_order(const Tables *t) {
    static const char *const models[] = {"G-1.6B", "G-5.4B", "G-10B", "L-1.5B", "L-6.0B", "L-11B"};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        double before = INFINITY;
        for (int parts = 3; parts <= 5; parts++) {
            char row[40];
            snprintf(row, sizeof row, "%s 1/%d", models[m], parts);
            bool calibrates = m == 0 && parts == 3;
            double ms = number_in(t, "tables15and16", row, "calibrated",
                                  calibrates ? SOURCE_PUBLISHED : SOURCE_SIMULATED);
            double cached = number_in(t, "tables15and16", row, "cached", SOURCE_SIMULATED);
            CHECK(ms < before && cached < ms, "%s: %g ms, cached %g", row, ms, cached);
            before = ms;
        }
    }
}

/* Two numbers of micro-batches; only BCD on two ranks can have virtual stages. */
static void check_pipelines(const Tables *t) {
    const Table *pipelines = tables_find(t, "pipeline1");
    const int ranks = omp_get_num_procs() > 1 ? 2 : 1;
    int rows = 0, full = 0;
    for (int r = 0; pipelines && r < pipelines->rows; r++) {
        full += !strcmp(pipelines->label[r], "full plain");
        if (strstr(pipelines->label[r], "virtual")) {
            rows++;
            CHECK(pipelines->cell[r * pipelines->columns].value >= 2, "%s", pipelines->label[r]);
        }
    }
    CHECK(pipelines && pipelines->rows == 2 * 2 * ranks + rows && rows == 2 * (ranks - 1) &&
              full == 2 * ranks,
          "%d pipelines, %d of virtual stages, %d of full updates", pipelines ? pipelines->rows : 0,
          rows, full);
}

/* Times of this machine: that they are there. */
static void check_measured(const Tables *t) {
    double full = number_in(t, "measured1", "full", "step", SOURCE_MEASURED);
    double mean = number_in(t, "measured1", "1/3 mean", "step", SOURCE_MEASURED), sum = 0;
    for (int k = 1; k <= 3; k++) {
        char row[40];
        snprintf(row, sizeof row, "1/3 submodel %d", k);
        sum += number_in(t, "measured1", row, "step", SOURCE_MEASURED);
        CHECK(number_in(t, "measured1", row, "cached", SOURCE_MEASURED) > 0, "%s", row);
    }
    CHECK(full > 0 && fabs(sum / 3 - mean) < 1e-9 * mean, "%g ms, mean %g", full, mean);
    double measured = number_in(t, "pipeline1", "BCD-1/3 plain", "measured", SOURCE_MEASURED);
    double simulated = number_in(t, "pipeline1", "BCD-1/3 plain", "simulated", SOURCE_SIMULATED);
    const Table *pipelines = tables_find(t, "pipeline1");
    for (int r = 0; pipelines && r < pipelines->rows; r++) {
        const Cell *times = &pipelines->cell[r * pipelines->columns + 2];
        CHECK(times->value > 0 && times[1].value > times->value / 20 &&
                  times[1].value < times->value * 20,
              "%s: %g ms, simulated %g", pipelines->label[r], times->value, times[1].value);
    }
    const Cell *cell = pipelines ? table_find(pipelines, "BCD-1/3 plain", "measured") : NULL;
    CHECK(cell && cell->spread >= 0, "no spread over the repeats");
    int last = pipelines ? pipelines->columns - 1 : 0;
    double sum_off = 0, noted = NAN;
    for (int r = 0; pipelines && r < pipelines->rows; r++)
        sum_off += fabs(pipelines->cell[r * pipelines->columns + last].value);
    for (int n = 0; pipelines && n < pipelines->notes; n++)
        sscanf(pipelines->note[n], "Mean absolute deviation %lg %%.", &noted);
    CHECK(pipelines && fabs(noted - 100 * sum_off / pipelines->rows) <= 0.0501, "%g %% off on %g",
          noted, sum_off);
    /* A mean over the repeats, which is not that of the other means, but near. */
    double off = number_in(t, "pipeline1", "BCD-1/3 plain", "deviation", SOURCE_NONE);
    double near = (1 + off) * measured / simulated;
    CHECK(near > 1.0 / 3 && near < 3, "%g ms, simulated %g, off by %g", measured, simulated, off);
}

/* Kept outputs of the prefix change the time, and no bit of the loss. */
static void check_prefix(const Tables *t) {
    static const char gpt[] = "gpt:layers=4,width=16,heads=2,context=16";
    char computed[80], kept[80];
    snprintf(computed, sizeof computed, "%s computed", gpt);
    snprintf(kept, sizeof kept, "%s kept", gpt);
    double loss = number_in(t, "figure3", computed, "loss", SOURCE_MEASURED);
    CHECK(loss == number_in(t, "figure3", kept, "loss", SOURCE_MEASURED), "loss %g", loss);
    CHECK(number_in(t, "figure3", kept, "peak", SOURCE_MEASURED) >
              number_in(t, "figure3", computed, "peak", SOURCE_MEASURED),
          "what is kept takes no memory");
    CHECK(number_in(t, "figure3", computed, "share", SOURCE_MEASURED) == 1, "of its own time");
}

/* A cycle of three phases of two epochs of 64 samples in batches of 8. */
static void check_cycle(const char *dir) {
    RunFile file;
    if (!read_run(&file, dir)) return;
    CHECK(file.submodels == 3 && file.curve_rows == 3 * 2 * 64 / 8 && file.switch_rows == 3,
          "%d submodels, %zu updates, %zu phases", file.submodels, file.curve_rows,
          file.switch_rows);
    runfile_free(&file);
}

/* Medians of ratios are near the ratio of the medians. */
static bool is_ratio(double ratio, const Cell *over, const Cell *under) {
    double off = ratio / (over->value / under->value);
    return off > 1.0 / 3 && off < 3;
}

/* Shares are of the step of the full update, or of the cycle that computes all. */
static void check_shares(const Tables *t) {
    const Table *steps = tables_find(t, "measured1"), *cycles = tables_find(t, "figure3");
    if (!CHECK(steps && steps->rows == 5 && cycles && cycles->rows == 2, "no shares")) return;
    for (int r = 1; r < 5; r++) {
        const Cell *cell = &steps->cell[r * steps->columns];
        const int k = r < 4 ? r : 0;
        CHECK(is_ratio(cell[1].value, &cell[0], steps->cell) &&
                  is_ratio(cell[4].value, &cell[3], steps->cell),
              "%s: %g and %g of full", steps->label[r], cell[1].value, cell[4].value);
        CHECK(cell[2].value == timing_flop_ratio(k, 3, false) &&
                  cell[5].value == timing_flop_ratio(k, 3, true),
              "%s: in theory %g and %g", steps->label[r], cell[2].value, cell[5].value);
    }
    const Cell *kept = &cycles->cell[cycles->columns];
    CHECK(kept[1].value == kept[0].value / cycles->cell->value, "%g", kept[1].value);
}

/* The committed file has the same measured tables of other networks: the same columns and sources.
 */
static void check_columns(const Tables *today, const char *path) {
    Tables file = {0};
    CHECK(tables_read(&file, path) == 0, "%s", error_message());
    for (int t = 0; t < 3; t++) {
        static const char *const names[] = {"figure3", "measured1", "pipeline1"};
        const Table *a = tables_find(today, names[t]), *b = tables_find(&file, names[t]);
        if (!CHECK(a && b && a->columns == b->columns, "%s: another table", names[t])) continue;
        CHECK(a->figure == b->figure && a->notes == b->notes, "%s: %d notes", a->name, a->notes);
        for (int c = 0; c < a->columns; c++) {
            const TableColumn *x = &a->column[c], *y = &b->column[c];
            CHECK(!strcmp(x->name, y->name) && !strcmp(x->head, y->head) &&
                      !strcmp(x->unit, y->unit) && x->kind == y->kind &&
                      x->decimals == y->decimals &&
                      a->cell[(a->rows - 1) * a->columns + c].source ==
                          b->cell[(b->rows - 1) * b->columns + c].source,
                  "%s: column %s is not as in the file", a->name, x->name);
        }
    }
    tables_free(&file);
}

static void experiment_writes_its_tables(void) {
    Tables tables = {0};
    const Printed *printed = run(0, "experiment timing --preset smoke --out times");
    for (const char *at = printed->out; *at; at += strcspn(at, "\n") + 1)
        CHECK(strcspn(at, "\n") <= 120, "%zu columns: %.130s", strcspn(at, "\n"), at);
    CHECK(!strstr(printed->out, "nan"), "a NaN is shown");
    if (CHECK(tables_read(&tables, scratch_path("times/timing.h5")) == 0, "%s", error_message())) {
        CHECK(tables.provenance.wall > 0, "it took no time");
        check_order(&tables);
        check_prefix(&tables);
        check_measured(&tables);
        check_pipelines(&tables);
        check_shares(&tables);
        check_cycle("times/rows/gpt:layers=4,width=16,heads=2,context=16-computed");
        check_columns(&tables, BCD_SOURCE_DIR "/experiments/results/timing.h5");
    }
    tables_free(&tables);
    printed = run(0, "report times/timing.h5");
    CHECK(strstr(printed->out, "\nno page: ") || file_exists(scratch_path("times/report.html")),
          "no report");
}

/* Stopped within Figure 3, whose trainings have one thread. */
static void goes_on_where_it_stopped(void) {
    RunFile file;
    run(75, "experiment timing --preset smoke --minutes 0.001 --quiet --out pieces");
    if (!read_run(&file, "pieces/rows/gpt:layers=4,width=16,heads=2,context=16-computed")) return;
    CHECK(file.provenance.threads == 1, "%d threads", file.provenance.threads);
    runfile_free(&file);
}

/* sqrt(10 / 4): the squares of -2 ... 2 are 10 together. */
static void repeats_have_a_median(void) {
    double odd[] = {5, 1, 4, 2, 3}, even[] = {4, 1, 2, 9};
    Cell cell = {.source = SOURCE_MEASURED},
         simulated = {.spread = NAN, .source = SOURCE_SIMULATED};
    timing_take_median(&cell, odd, 5);
    CHECK(cell.value == 3 && fabs(cell.spread - sqrt(2.5)) < 1e-15, "%g +- %g", cell.value,
          cell.spread);
    timing_take_median(&simulated, even, 4);
    CHECK(simulated.value == 3 && isnan(simulated.spread), "%g +- %g", simulated.value,
          simulated.spread);
}

static void measure_once(void) {
    static const MeasuredNetwork tiny = {"resnet:depth=8,width=2", "synthetic", "sgd", "4"};
    Tables tables = {0};
    CommandLine line;
    command_line_defaults(&line, COMMAND_EXPERIMENT);
    line.experiment.preset = PRESET_SMOKE;
    CHECK(paper_add_shares(&tables, &line, &tiny, 1) == 0 &&
              paper_add_pipelines(&tables, &line, &tiny, 1) == 0,
          "%s", error_message());
    tables_free(&tables);
}

static void nothing_is_left(void) {
    CHECK(allocations_left(measure_once) == 0, "memory of a measurement is not freed");
}

void test_timing(void) {
    RUN(repeats_have_a_median);
    RUN(theory_in_letters);
    RUN(calibrated_cell_comes_out);
    RUN(steps_in_theory);
    RUN(costs_add_up);
    RUN(unknown_models_are_left_out);
    RUN(goes_on_where_it_stopped);
    RUN(experiment_writes_its_tables);
    RUN(nothing_is_left);
}
