/* Reports: the tables in the terminal, and the page. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../experiments/report/figures.h"
#include "../../experiments/report/gnuplot.h"
#include "../../experiments/report/page.h"
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

/* ---- figures --------------------------------------------------------------------------------- */

/* What gnuplot makes of a script, which is freed; "" and a failed CHECK if nothing. */
static char *drawn(char *script) {
    char *svg = script ? gnuplot_svg(script) : NULL;
    free(script);
    CHECK(svg, "%s", error_message());
    return svg ? svg : calloc(1, 1);
}

/* A study ready to be reported; the caller frees it. */
static void make_report(Report *report, Study study) {
    *report = (Report){.study = study};
    CHECK(report_prepare(report) == 0, "%s", error_message());
}

/* The same training with other seeds, its losses `more` times those of the first. */
static void add_seed(Study *study, int row, int64_t seed, double more) {
    StudyRow *added = study_add(study);
    if (!added) abort();
    const StudyRow *from = &study->row[row];
    *added = *from;
    added->seed = seed;
    added->curve = malloc(from->curve_rows * sizeof *added->curve);
    added->evaluation = malloc(from->evaluation_rows * sizeof *added->evaluation);
    added->switches = NULL;
    added->switch_rows = 0;
    if (!added->curve || !added->evaluation) abort();
    memcpy(added->curve, from->curve, from->curve_rows * sizeof *added->curve);
    memcpy(added->evaluation, from->evaluation, from->evaluation_rows * sizeof *added->evaluation);
    for (size_t i = 0; i < from->curve_rows; i++) added->curve[i].loss *= more;
}

/* Shades of the active submodel: of three submodels, each 20 updates long, then of visits too short
 * to be told apart. */
static void case_strip(void) {
    if (!gnuplot_present()) SKIP("no gnuplot");
    Report report;
    make_report(&report, sample_study());
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
    CHECK(!figure_operations(&figure) && strstr(error_message(), "operations are not known"), "%s",
          error_message());
    report_free(&report);
}

/* Two seeds are one line, their mean, in a band from the one to the other. */
static void case_seeds_band(void) {
    Study study = sample_study();
    add_seed(&study, 0, 2, 3);
    add_seed(&study, 1, 2, 3);
    Report report;
    make_report(&report, study);
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

/* ---- the page -------------------------------------------------------------------------------- */

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
    Report report;
    make_report(&report, sample_study());
    bool drawn;
    snprintf(report.study.row[1].provenance.command, 64, "bcd train --note \"<script>&\"");
    CHECK(report_html(&report, scratch_path("page.html"), &drawn) == 0, "%s", error_message());
    size_t count;
    char *text = read_bytes("page.html", &count);
    if (CHECK(count > 0, "no page")) {
        static const char *const expected[] = {"<h2>resnet8 synthetic sgd</h2>",
                                               "<a href=\"#case1\">gpt-2x64 text sgd</a>",
                                               "<section id=\"notes\">",
                                               "bcd experiment cost</code>&nbsp;makes&nbsp;it",
                                               "<th scope=\"row\">Figure 3</th>",
                                               "<summary>All of these trainings",
                                               "<h3>BCD-1/3, seed 1</h3>",
                                               "<th scope=\"row\">switches</th>",
                                               "<i>submodels</i> ",
                                               "<th scope=\"row\">--momentum</th>"};
        for (size_t e = 0; e < sizeof expected / sizeof *expected; e++)
            CHECK(strstr(text, expected[e]), "\"%s\" is missing", expected[e]);
        CHECK(!strstr(text, "<script>") && strstr(text, "&lt;script&gt;&amp;"), "not escaped");
        CHECK(!strstr(text, "src=") && !strstr(text, "url(") && !strstr(text, "<link"),
              "something is loaded");
        size_t figures = count_of(text, "<svg");
        CHECK(drawn == gnuplot_present() && figures == (drawn ? 10 : 0), "%zu figures", figures);
        CHECK(drawn || strstr(text, "apt-get install gnuplot-nox"), "no advice");
        check_page(text);
    }
    free(text);
    report_free(&report);
}

/* Of many cases the first sixteen are drawn, all are there. */
static void case_page_of_many(void) {
    enum { MORE = 18 };
    Study study = sample_study();
    for (int i = 0; i < MORE; i++) {
        add_seed(&study, 0, 1, 1);
        StudyRow *row = &study.row[study.rows - 1];
        row->batch = 100 + i;
        free(row->curve); /* only memory can be drawn */
        free(row->evaluation);
        row->curve = NULL;
        row->evaluation = NULL;
        row->curve_rows = row->evaluation_rows = 0;
    }
    Report report;
    make_report(&report, study);
    bool drawn;
    CHECK(report_html(&report, scratch_path("many.html"), &drawn) == 0, "%s", error_message());
    size_t count;
    char *text = read_bytes("many.html", &count);
    CHECK(count_of(text, "<h2>resnet8 synthetic") == MORE + 1, "cases are missing");
    CHECK(!drawn ||
              (count_of(text, "<svg") == 10 + 14 && count_of(text, "The first 16 networks") == 4),
          "%zu figures", count_of(text, "<svg"));
    check_page(text);
    free(text);
    report_free(&report);
}

/* Tables beside a study: marks, figure, escapes; and still one page. */
static void case_page_of_tables(void) {
    Report report = {.study = sample_study(), .files = 2, .file = calloc(2, sizeof *report.file)};
    if (!report.file) abort();
    report.file[0] = sample_tables();
    report.file[1] = sample_tables();
    snprintf(report.file[1].table[0]->title, 64, "Tables 5 to 7, 12 and 14: sample");
    snprintf(report.file[1].provenance.command, 64, "bcd experiment sample");
    CHECK(report_prepare(&report) == 0 && report.files == 3, "%s", error_message());
    bool drawn;
    CHECK(report_html(&report, scratch_path("tables.html"), &drawn) == 0, "%s", error_message());
    size_t count;
    char *text = read_bytes("tables.html", &count);
    static const char *const expected[] = {
        "<td class=\"p\">12.000<sup title=\"published\">p</sup></td>",
        "<td class=\"c\">12.345<sup title=\"closed form\">c</sup></td>",
        "<td>+2.9 %</td>",
        "Made by <code>bcd experiment sample</code>",
        "<th scope=\"row\">Table 6</th><td>cost saved against A100</td><td><a href=\"#table2_0\">",
        "<td>GPU hours saved against A800</td><td><a href=\"#table2_0\">",
        "<h2>Sample: times &amp; &quot;more&quot;</h2>",
        "G-&lt;small&gt;<small>ms</small>",
        "<p class=\"note\">A note.</p>",
        "<a href=\"#table2_1\">Sample: times &amp; ",
        "<section id=\"table2_1\">",
        "m measured, s simulated"};
    for (size_t e = 0; e < sizeof expected / sizeof *expected; e++)
        CHECK(strstr(text, expected[e]), "\"%s\" is missing", expected[e]);
    CHECK(!drawn || (strstr(text, "ms per iteration \"; exit ' # &lt;b>") &&
                     count_of(text, "<svg") >= 12),
          "%zu figures", count_of(text, "<svg"));
    check_page(text);
    free(text);
    report_free(&report);
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
    static const TableColumn columns[] = {{"x", "x", "ms", COLUMN_NUMBER, 0},
                                          {"x_simulated", "x sim.", "ms", COLUMN_NUMBER, 0},
                                          {"y", "y", "ms", COLUMN_NUMBER, 0},
                                          {"form", "form", "ms", COLUMN_NUMBER, 0}};
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

/* A page can always be made: without gnuplot it says how to get the figures. */
static void case_page_without_gnuplot(void) {
    char keep[4096];
    const char *old = getenv("PATH");
    snprintf(keep, sizeof keep, "%s", old ? old : "");
    Report report;
    make_report(&report, sample_study());
    bool drawn = true;
    setenv("PATH", "/nowhere", 1);
    int status = report_html(&report, scratch_path("plain.html"), &drawn);
    setenv("PATH", keep, 1);
    CHECK(status == 0 && !drawn, "%d %s", status, error_message());
    size_t count;
    char *text = read_bytes("plain.html", &count);
    CHECK(strstr(text, "apt-get install gnuplot-nox") && strstr(text, "<h2>resnet8 synthetic sgd"),
          "page");
    check_page(text);
    free(text);
    report_free(&report);
}

/* A drawing that fails is told where it would stand, and takes nothing else with it. */
static void case_figure_missing(void) {
    if (!gnuplot_present()) SKIP("no gnuplot");
    Page page;
    if (!CHECK(page_begin(&page, true) == 0, "%s", error_message())) return;
    page_figure(&page, strdup("nonsense"), "a", "Bars & <lines>", "");
    page_figure(&page, strdup("set terminal svg\nplot x"), "b", "A line", "");
    fprintf(page.out, "<p>the end</p>");
    CHECK(page_write(&page, scratch_path("missing.html")) == 0, "%s", error_message());
    size_t count;
    char *text = read_bytes("missing.html", &count);
    CHECK(strstr(text, "did not draw it: Bars &amp; &lt;lines&gt;.</p>") &&
              count_of(text, "<figure><div class=\"scroll\"><svg") == 1 &&
              strstr(text, "<p>the end</p>"),
          "%.300s", text);
    check_page(text);
    free(text);
}

static void case_page_not_writable(void) {
    Report report;
    make_report(&report, sample_study());
    bool drawn;
    CHECK(report_html(&report, "/nowhere/at/all.html", &drawn) == -1 &&
              strstr(error_message(), "/nowhere/at/all.html"),
          "%s", error_message());
    report_free(&report);
}

void test_report(void) {
    RUN(case_strip);
    RUN(case_seeds_band);
    RUN(case_one_refused);
    RUN(case_page);
    RUN(case_page_of_many);
    RUN(case_page_of_tables);
    RUN(case_bars);
    RUN(case_series);
    RUN(case_timeline);
    RUN(case_page_without_gnuplot);
    RUN(case_figure_missing);
    RUN(case_page_not_writable);
}
