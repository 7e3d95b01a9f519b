/* Figures as drawn, each a file of its own. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../experiments/plan/plan.h"
#include "../../experiments/study/study.h"
#include "cli.h"
#include "report_sample.h"

/* A figure of a file in the scratch directory, to be freed; NULL: of the same file as before. */
static char *draw(const char *file, const char *name) {
    char path[256];
    size_t count;
    if (file) run(0, "report %s --out figures.html --figures figures", file);
    snprintf(path, sizeof path, "figures/%s.svg", name);
    char *svg = read_bytes(path, &count);
    CHECK(count && !strstr(svg, "nan"), "%s", name);
    return svg;
}

static void write_study(const char *name, Study *study) {
    CHECK(study_write(study, scratch_path(name)) == 0, "%s", error_message());
    study_free(study);
}

static void write_tables(const char *name, const Tables *tables) {
    CommandLine line;
    command_line_defaults(&line, COMMAND_REPORT);
    CHECK(tables_write(tables, &line, scratch_path(name)) == 0, "%s", error_message());
}

/* A full update and BCD-1/3. */
static Study two_trainings(void) {
    Study study = {0};
    sample_training(&study, "resnet8", true, 1, 0.02);
    sample_training(&study, "resnet8", true, 3, 0.01);
    return study;
}

/* The training loss against updates, with a dot for each training where they are compared. */
static void case_loss(void) {
    Study study = two_trainings();
    if (!has_figures()) SKIP("no Python with h5py, matplotlib and jinja2");
    write_study("loss.h5", &study);
    char *svg = draw("loss.h5", "0-resnet8-synthetic-sgd-loss");
    CHECK(strstr(svg, ">updates<") && count_of(svg, ">BCD-1/3<") == 1, "%s", svg);
    free(svg);
}

/* The mean of seeds whose losses are 1 and 3 times each other, and their range, end where they
 * should: named on the axis, whose numbers are known. */
static void case_other_clock(void) {
    Study study = two_trainings();
    if (!has_figures()) SKIP("no Python with h5py, matplotlib and jinja2");
    sample_seed(&study, 0, 2, 3);
    sample_seed(&study, 1, 2, 3);
    study.row[1].threads++;
    write_study("seeds.h5", &study);
    char *svg = draw("seeds.h5", "0-resnet8-synthetic-sgd-time");
    CHECK(strstr(svg, ">seconds, not all on as many threads") &&
              count_of(svg, "PolyCollection") == 2, /* a band each */
          "%s", svg);
    free(svg);
}

/* A simulated column has the colour of the column it stands for, dashed or pale. */
static void case_series(void) {
    static const TableColumn columns[] = {
        {"x", "x", "ms", COLUMN_NUMBER, 0, SOURCE_NONE},
        {"x_simulated", "x sim.", "ms", COLUMN_NUMBER, 0, SOURCE_NONE},
        {"y", "y", "ms", COLUMN_NUMBER, 0, SOURCE_NONE}};
    static const Source sources[] = {SOURCE_PUBLISHED, SOURCE_SIMULATED, SOURCE_PUBLISHED};
    static const struct {
        FigureShape shape;
        const char *name;
    } shapes[] = {{FIGURE_LINES, "lines"}, {FIGURE_BARS, "bars"}};
    Tables tables = {0};
    if (!has_figures()) SKIP("no Python with h5py, matplotlib and jinja2");
    for (int s = 0; s < 2; s++) {
        Table *table = tables_add(&tables, shapes[s].name, "T", "row", columns, 3);
        table->figure = shapes[s].shape;
        for (int r = 0; r < 2; r++) {
            table_row(table, "%d | <%d>", r, r);
            for (int c = 0; c < 3; c++) table_number(table, c, r + c, sources[c]);
        }
    }
    write_tables("series.h5", &tables);
    tables_free(&tables);
    char *svg = draw("series.h5", "lines-T");
    CHECK(strstr(svg, ">x sim.<") && strstr(svg, ">1 | &lt;1&gt;<") &&
              count_of(svg, "stroke-dasharray: 5.55") == 1,
          "%s", svg);
    free(svg);
    svg = draw(NULL, "bars-T");
    CHECK(count_of(svg, "fill: #0072b2; opacity: 0.45") == 2 + 1, "%s", svg);
    free(svg);
}

/* Of a timeline only the title and the notes are text. */
static void check_printed(const Table *table, int (*print)(FILE *, const Table *)) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    CHECK(out && print(out, table) == 0, "%s", error_message());
    fclose(out);
    CHECK(strstr(text, "A step\n") && strstr(text, "The GPUs wait ") &&
              strstr(text, "3 micro-batches.") && strstr(text, "bcd report FILE draws it") &&
              !strstr(text, "rank"),
          "%s", text);
    free(text);
}

/* A pipeline step: from the simulator into a file, back, printed and drawn. */
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
    CommandLine line;
    command_line_defaults(&line, COMMAND_PLAN);
    timeline_add(&made, "step", "A step", &c, 0);
    CHECK(tables_write(&made, &line, scratch_path("timeline.h5")) == 0 &&
              tables_read(&read, scratch_path("timeline.h5")) == 0,
          "%s", error_message());
    Table *table = read.tables ? read.table[0] : NULL;
    if (CHECK(table && table->figure == FIGURE_TIMELINE, "no timeline")) {
        CHECK(table->rows == 2 * 3 * 3, "%d tasks", table->rows);
        check_printed(table, table_print);
        check_printed(table, table_print_markdown);
        write_tables("step.h5", &read);
        char *svg = has_figures() ? draw("step.h5", "step-A-step") : NULL;
        if (svg)
            CHECK(
                strstr(svg, ">weight gradient<") && strstr(svg, ">ms<") && strstr(svg, ">rank  1<"),
                "%s", svg);
        free(svg);
    }
    tables_free(&made);
    tables_free(&read);
    model_free(model);
}

void test_figures(void) {
    RUN(case_loss);
    RUN(case_other_clock);
    RUN(case_series);
    RUN(case_timeline);
}
