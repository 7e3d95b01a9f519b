/* Reports: the tables in the terminal, and the page. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../experiments/report/figures.h"
#include "../../experiments/report/gnuplot.h"
#include "../../experiments/report/report.h"
#include "../../experiments/study/operations.h"
#include "../../experiments/tables/timeline.h"
#include "../../ref/error.h"
#include "../data/scratch.h"
#include "cli.h"
#include "study_sample.h"
#include "tables_sample.h"

static size_t count_of(const char *text, const char *what) {
    size_t count = 0;
    for (; (text = strstr(text, what)); text++) count++;
    return count;
}

/* ---- figures ------------------------------------------------------------------------------- */

/* Shades of the active submodel: of three submodels, each 20 updates long, then of visits too short
 * to be told apart. */
static void case_strip(void) {
    if (!gnuplot_present()) SKIP("no gnuplot");
    Study study = sample_study();
    Figure figure = {"strip", 2, {&study.row[0], &study.row[1]}, 10};
    char *svg = figure_loss(&figure);
    if (CHECK(svg, "%s", error_message()))
        CHECK(count_of(svg, "fill-opacity='0.18'") == 4 &&
                  count_of(svg, "fill-opacity='0.59'") == 3 && strstr(svg, ">BCD-1/3<") &&
                  strstr(svg, "pale at the input"),
              "%s", svg);
    free(svg);
    study.row[0].steps = 200000;
    svg = figure_loss(&figure);
    CHECK(svg && count_of(svg, "fill-opacity='0.55'") == 1, "%s", svg ? svg : error_message());
    free(svg);
    CHECK(!figure_operations(&figure) && strstr(error_message(), "operations are not known"), "%s",
          error_message());
    for (int r = 0; r < study.rows; r++) study_operations(&study.row[r]);
    svg = figure_operations(&figure);
    CHECK(svg && strstr(svg, ">operations, GFLOP<"), "%s", svg ? svg : error_message());
    free(svg);
    study_free(&study);
}

/* Elements nest, every id is there once, and nothing is empty that must not be. */
static void check_page(const char *text) {
    static const char *const empty[] = {"meta", "path", "use", "circle", "br", "rect", "stop"};
    enum { DEEPEST = 64 };
    char open[DEEPEST][32];
    int depth = 0;
    for (const char *at = text; (at = strchr(at, '<')); at++) {
        char name[32];
        bool closes = at[1] == '/';
        if (at[1] == '!' || at[1] == '?') continue;
        size_t length = strcspn(at + 1 + closes, " \t\n/>");
        snprintf(name, sizeof name, "%.*s", (int)length, at + 1 + closes);
        const char *end = strchr(at, '>');
        bool single = !end || end[-1] == '/';
        for (size_t e = 0; e < sizeof empty / sizeof *empty; e++) single |= !strcmp(name, empty[e]);
        if (closes && !CHECK(depth && !strcmp(open[depth - 1], name), "</%s> closes <%s>", name,
                             depth ? open[depth - 1] : ""))
            return;
        if (closes) depth--;
        if (!closes && !single && CHECK(depth < DEEPEST, "too deep"))
            snprintf(open[depth++], sizeof open[0], "%s", name);
    }
    CHECK(depth == 0, "%d elements are not closed", depth);
    for (const char *at = text; (at = strstr(at, " id=")); at++) {
        char id[80];
        snprintf(id, sizeof id, "%.*s", (int)strcspn(at + 5, "'\"") + 6, at);
        CHECK(count_of(text, id) == 1, "%s %zu times", id, count_of(text, id));
    }
}

static void case_page(void) {
    Report report = {.study = sample_study()};
    bool drawn;
    CHECK(report_html(&report, scratch_path("page.html"), &drawn) == 0, "%s", error_message());
    size_t count;
    char *text = read_bytes("page.html", &count);
    if (CHECK(count > 0, "no page")) {
        CHECK(strstr(text, "72.5 %") && strstr(text, "395"), "values are missing");
        CHECK(!strstr(text, "<script>") && strstr(text, "&lt;script&gt;&amp;"), "not escaped");
        CHECK(!strstr(text, "src=") && !strstr(text, "url(") && !strstr(text, "<link"),
              "something is loaded");
        size_t figures = count_of(text, "<svg");
        CHECK(drawn == gnuplot_present() && figures == (drawn ? 8 : 0), "%zu figures", figures);
        CHECK(drawn || strstr(text, "apt-get install gnuplot-nox"), "no advice");
        check_page(text);
    }
    free(text);
    study_free(&report.study);
}

/* Of many groups the first sixteen are drawn, all are there. */
static void case_page_of_many(void) {
    enum { MORE = 18 };
    Report report = {.study = sample_study()};
    bool drawn;
    for (int i = 0; i < MORE; i++) {
        StudyRow *row = study_add(&report.study);
        if (!CHECK(row, "%s", error_message())) return;
        *row = report.study.row[0];
        row->seed = 2 + i;
        row->curve = NULL; /* only memory can be drawn */
        row->evaluation = NULL;
        row->switches = NULL;
        row->curve_rows = row->evaluation_rows = 0;
    }
    CHECK(report_html(&report, scratch_path("many.html"), &drawn) == 0, "%s", error_message());
    size_t count;
    char *text = read_bytes("many.html", &count);
    CHECK(count_of(text, "<h2>resnet8 on synthetic") == MORE + 1, "groups are missing");
    CHECK(
        !drawn || (count_of(text, "<svg") == 8 + 14 && count_of(text, "The first 16 groups") == 4),
        "%zu figures", count_of(text, "<svg"));
    check_page(text);
    free(text);
    study_free(&report.study);
}

/* Tables beside a study: marks, figure, escapes; and still one page. */
static void case_page_of_tables(void) {
    Tables files[2] = {sample_tables(), sample_tables()};
    Report report = {.study = sample_study(), .files = 2, .file = files};
    bool drawn;
    CHECK(report_html(&report, scratch_path("tables.html"), &drawn) == 0, "%s", error_message());
    size_t count;
    char *text = read_bytes("tables.html", &count);
    static const char *const expected[] = {
        "<td class=\"p\">12.000<sup title=\"published\">p</sup></td>",
        "<td class=\"c\">12.345<sup title=\"closed form\">c</sup></td>",
        "<td>+2.9 %</td>",
        "<h2>Sample: times &amp; &quot;more&quot;</h2>",
        "G-&lt;small&gt;<small>ms</small>",
        "<p class=\"note\">A note.</p>",
        "<a href=\"#table1_1\">Sample: times &amp; ",
        "<section id=\"table1_1\">",
        "m measured, s simulated"};
    for (size_t e = 0; e < sizeof expected / sizeof *expected; e++)
        CHECK(strstr(text, expected[e]), "\"%s\" is missing", expected[e]);
    CHECK(!drawn || (strstr(text, "ms per iteration \"; exit ' # &lt;b>") &&
                     count_of(text, "<svg") == 10),
          "%zu figures", count_of(text, "<svg"));
    check_page(text);
    free(text);
    study_free(&report.study);
    for (int f = 0; f < 2; f++) tables_free(&files[f]);
}

/* A page can always be made: without gnuplot it says how to get the figures. */
/* The first table as bars: its two columns of numbers, of which one has a cell missing. */
static void case_bars(void) {
    if (!gnuplot_present()) SKIP("no gnuplot");
    Tables tables = sample_tables();
    tables.table[0]->figure = FIGURE_BARS;
    char *svg = figure_table(tables.table[0], "bars");
    if (CHECK(svg, "%s", error_message())) {
        CHECK(strstr(svg, ">published<") && strstr(svg, ">closed form<") &&
                  strstr(svg, ">two | three<") && !strstr(svg, ">deviation<"),
              "%s", svg);
    }
    free(svg);
    Table *empty = tables_add(&tables, "empty", "Empty", "row", NULL, 0);
    CHECK(empty && !figure_table(empty, "none") && strstr(error_message(), "nothing to draw"), "%s",
          error_message());
    tables_free(&tables);
}

/* A pipeline step: from the simulator into a file, back, in letters and drawn. */
static void case_timeline(void) {
    Model *model = model_create("gpt:layers=6,width=64,heads=2,context=64,vocabulary=256");
    Configuration c = {.model = model,
                       .cluster = {gpu_find("a100"), 2, 1, NETWORK_2X25G, practice_default},
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
        char *svg = gnuplot_present() ? figure_table(table, "step") : NULL;
        if (gnuplot_present() && CHECK(svg, "%s", error_message()))
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

static void case_page_without_gnuplot(void) {
    char keep[4096];
    const char *old = getenv("PATH");
    snprintf(keep, sizeof keep, "%s", old ? old : "");
    Report report = {.study = sample_study()};
    bool drawn = true;
    setenv("PATH", "/nowhere", 1);
    int status = report_html(&report, scratch_path("plain.html"), &drawn);
    setenv("PATH", keep, 1);
    CHECK(status == 0 && !drawn, "%d %s", status, error_message());
    size_t count;
    char *text = read_bytes("plain.html", &count);
    CHECK(strstr(text, "apt-get install gnuplot-nox") && strstr(text, "72.5 %"), "page");
    free(text);
    study_free(&report.study);
}

static void case_page_not_writable(void) {
    Report report = {.study = sample_study()};
    bool drawn;
    CHECK(report_html(&report, "/nowhere/at/all.html", &drawn) == -1 &&
              strstr(error_message(), "/nowhere/at/all.html"),
          "%s", error_message());
    study_free(&report.study);
}

void test_report(void) {
    RUN(case_strip);
    RUN(case_page);
    RUN(case_page_of_many);
    RUN(case_page_of_tables);
    RUN(case_bars);
    RUN(case_timeline);
    RUN(case_page_without_gnuplot);
    RUN(case_page_not_writable);
}
