/* The figures of a report, as scripts and drawn. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../experiments/report/figures.h"
#include "../../experiments/report/gnuplot.h"
#include "../../experiments/study/operations.h"
#include "../../experiments/tables/timeline.h"
#include "../../ref/error.h"
#include "../data/scratch.h"
#include "report_sample.h"
#include "tables_sample.h"

/* What gnuplot makes of a script, which is freed; "" and a failed CHECK if nothing. */
static char *drawn(char *script) {
    char *svg = script ? gnuplot_svg(script) : NULL;
    free(script);
    CHECK(svg, "%s", error_message());
    return svg ? svg : calloc(1, 1);
}

/* Shades of the active submodel: of three submodels, each 20 updates long, then of phases too short
 * to be told apart. */
static void case_strip(void) {
    if (!gnuplot_present()) SKIP("no gnuplot");
    Report report;
    sample_report(&report, sample_study());
    Figure figure = {"strip", &report.cases, &report.cases.item[0]};
    char *svg = drawn(figure_loss(&figure));
    CHECK(count_of(svg, "fill-opacity='0.18'") == 4 && count_of(svg, "fill-opacity='0.59'") == 3 &&
              strstr(svg, ">BCD-1/3<") && strstr(svg, "pale at the input"),
          "%s", svg);
    free(svg);
    report.study.row[0].steps = 200000;
    svg = drawn(figure_loss(&figure));
    CHECK(count_of(svg, "fill-opacity='0.55'") == 1, "%s", svg);
    free(svg);
    svg = drawn(figure_operations(&figure));
    CHECK(strstr(svg, ">operations, GFLOP<"), "%s", svg);
    free(svg);
    free(report.study.row[0].operations);
    report.study.row[0].operations = NULL;
    char *script = figure_time(&figure);
    CHECK(script && strstr(script, "'seconds of training'"), "%s", script);
    free(script);
    report.study.row[1].threads++;
    script = figure_time(&figure);
    CHECK(script && strstr(script, "'seconds, not all on as many threads"), "%s", script);
    free(script);
    CHECK(!figure_operations(&figure) && strstr(error_message(), "operations are not known"), "%s",
          error_message());
    report_free(&report);
}

/* Two seeds are one line, their mean, in a band from the one to the other. */
static void case_seeds_band(void) {
    Study study = sample_study();
    sample_seed(&study, 0, 2, 3);
    sample_seed(&study, 1, 2, 3);
    Report report;
    sample_report(&report, study);
    Figure figure = {"seeds", &report.cases, &report.cases.item[0]};
    char *script = figure_loss(&figure), line[64], band[64];
    if (!CHECK(script, "%s", error_message())) return;
    double smooth[SAMPLE_STEPS];
    study_smooth(smooth, report.study.row[0].curve, SAMPLE_STEPS, 10);
    snprintf(line, sizeof line, "\n%d %.5g\n", SAMPLE_STEPS, 2 * smooth[SAMPLE_STEPS - 1]);
    snprintf(band, sizeof band, "\n%d %.5g %.5g\n", SAMPLE_STEPS, smooth[SAMPLE_STEPS - 1],
             3 * smooth[SAMPLE_STEPS - 1]);
    CHECK(report.cases.cases == 2 && strstr(script, line) && strstr(script, band) &&
              count_of(script, "with lines") == 2,
          "%s, %s: %s", line, band, script);
    free(script);
    report_free(&report);
}

/* Many drawings come from one process; one that is refused takes no other with it. */
static void case_one_refused(void) {
    if (!gnuplot_present()) SKIP("no gnuplot");
    char good[] = "set terminal svg\n$x << END\n1 2\nEND\nset title 'good'\nplot $x",
         bad[] = "set terminal svg\nplot $x", worse[] = "set multiplot\nnonsense";
    char *script[] = {good, bad, good, worse, bad, good, good}, *svg[7];
    CHECK(gnuplot_draw(svg, script, 7) == 4, "not four: %s", error_message());
    for (int i = 0; i < 7; i++) {
        CHECK(script[i] == good
                  ? svg[i] && strstr(svg[i], ">good<") && count_of(svg[i], "<svg") == 1
                  : !svg[i],
              "%d: %s", i, svg[i] ? svg[i] : "");
        free(svg[i]);
    }
    CHECK(strstr(error_message(), "gnuplot: it refused the figure: "), "%s", error_message());
}

/* The first table as bars: its two columns of numbers, of which one has a cell missing. */
static void case_bars(void) {
    if (!gnuplot_present()) SKIP("no gnuplot");
    Tables tables = sample_tables();
    for (int stacked = 0; stacked < 2; stacked++) {
        tables.table[0]->figure = stacked ? FIGURE_STACKED : FIGURE_BARS;
        char *svg = drawn(figure_table(tables.table[0], "bars"));
        CHECK(strstr(svg, ">published<") && strstr(svg, ">closed form<") &&
                  strstr(svg, ">two | three<") && !strstr(svg, ">deviation<"),
              "%s", svg);
        free(svg);
    }
    Table *empty = tables_add(&tables, "empty", "Empty", "row", NULL, 0);
    CHECK(empty && !figure_table(empty, "none") && strstr(error_message(), "nothing to draw"), "%s",
          error_message());
    tables_free(&tables);
}

/* What was simulated has the colour of what it stands for: pale, or dashed. */
static void case_series(void) {
    static const TableColumn columns[] = {
        {"x", "x", "ms", COLUMN_NUMBER, 0, SOURCE_NONE},
        {"x_simulated", "x sim.", "ms", COLUMN_NUMBER, 0, SOURCE_NONE},
        {"y", "y", "ms", COLUMN_NUMBER, 0, SOURCE_NONE},
        {"form", "form", "ms", COLUMN_NUMBER, 0, SOURCE_NONE}};
    static const Source sources[] = {SOURCE_PUBLISHED, SOURCE_SIMULATED, SOURCE_PUBLISHED,
                                     SOURCE_CLOSED_FORM};
    Tables tables = {0};
    Table *table = tables_add(&tables, "t", "T", "row", columns, 4);
    if (!table) abort();
    for (int r = 0; r < 2; r++) {
        table_row(table, "%d", r);
        for (int c = 0; c < 4; c++) table_number(table, c, r + c, sources[c]);
    }
    for (int bars = 0; bars < 2; bars++) {
        table->figure = bars ? FIGURE_BARS : FIGURE_LINES;
        char *script = figure_table(table, "series");
        if (!CHECK(script, "%s", error_message())) break;
        CHECK(count_of(script, figure_method_colours[0]) == 2 &&
                  count_of(script, figure_method_colours[1]) == 1 &&
                  count_of(script, bars ? "fs solid 0.45" : "dt 2") == 1 &&
                  (bars || strstr(script, "dt 3 lc rgb \"black\" title 'form'")),
              "%s", script);
        free(script);
    }
    tables_free(&tables);
}

/* A pipeline step: from the simulator into a file, back, in letters and drawn. */
static void case_timeline(void) {
    Model *model = model_create("gpt:layers=6,width=64,heads=2,context=64,vocabulary=256");
    Configuration c = {.model = model,
                       .cluster = {gpu_find("a100"), 2, 1, NETWORK_2X25G, efficiency_default},
                       .stage = {.batch = 1, .deferred = true},
                       .submodels = 1,
                       .pipeline = 2,
                       .replicas = 1,
                       .micro_batches = 3};
    Tables made = {0}, read = {0};
    Options options;
    options_defaults(&options, COMMAND_PLAN);
    CHECK(timeline_add(&made, "step", "A step", &c, 0) == 0 &&
              tables_write(&made, &options, scratch_path("timeline.h5")) == 0 &&
              tables_read(&read, scratch_path("timeline.h5")) == 0,
          "%s", error_message());
    Table *table = read.tables ? read.table[0] : NULL;
    if (CHECK(table && timeline_is(table), "no timeline")) {
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        CHECK(out && table_print(out, table) == 0, "%s", error_message());
        fclose(out);
        CHECK(table->rows == 2 * 3 * 3 && strstr(text, "A step, ") && strstr(text, "rank  0  f") &&
                  strstr(text, "rank  1  .") && strstr(text, "The GPUs wait ") &&
                  strstr(text, "3 micro-batches."),
              "%s", text);
        free(text);
        char *svg = gnuplot_present() ? drawn(figure_table(table, "step")) : NULL;
        if (svg)
            CHECK(count_of(svg, "<polygon") == 2 * 3 * 3 + 3 && /* and the legend */
                      strstr(svg, ">weight gradient<") && strstr(svg, ">ms<"),
                  "%s", svg);
        free(svg);
        table->cell[TASK_START].value = NAN; /* a file may hold anything */
        CHECK(!timeline_is(table), "a task that never begins");
    }
    tables_free(&made);
    tables_free(&read);
    model_free(model);
}

void test_figures(void) {
    RUN(case_strip);
    RUN(case_seeds_band);
    RUN(case_one_refused);
    RUN(case_bars);
    RUN(case_series);
    RUN(case_timeline);
}
