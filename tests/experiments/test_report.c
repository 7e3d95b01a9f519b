/* The page of a report. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../experiments/report/gnuplot.h"
#include "../../experiments/report/page.h"
#include "../../ref/error.h"
#include "../data/scratch.h"
#include "cli.h"
#include "report_sample.h"
#include "tables_sample.h"

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
    sample_report(&report, sample_study());
    bool drawn;
    snprintf(report.study.row[1].provenance.command, 64, "bcd train --note \"<script>&\"");
    CHECK(report_html(&report, scratch_path("page.html"), &drawn) == 0, "%s", error_message());
    size_t count;
    char *text = read_bytes("page.html", &count);
    if (CHECK(count > 0, "no page")) {
        static const char *const expected[] = {
            "<h2>resnet8 synthetic sgd</h2>",
            "<a href=\"#case1\">gpt-2x64 text sgd</a>",
            "<section id=\"notes\">",
            "\">Does BCD match the full update, at equal cost?</a></p>",
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
        sample_seed(&study, 0, 1, 1);
        StudyRow *row = &study.row[study.rows - 1];
        row->batch = 100 + i;
        free(row->curve); /* only memory can be drawn */
        free(row->evaluation);
        row->curve = NULL;
        row->evaluation = NULL;
        row->curve_rows = row->evaluation_rows = 0;
    }
    Report report;
    sample_report(&report, study);
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

/* A page can always be made: without gnuplot it says how to get the figures. */
static void case_page_without_gnuplot(void) {
    char keep[4096];
    const char *old = getenv("PATH");
    snprintf(keep, sizeof keep, "%s", old ? old : "");
    Report report;
    sample_report(&report, sample_study());
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
    sample_report(&report, sample_study());
    bool drawn;
    CHECK(report_html(&report, "/nowhere/at/all.html", &drawn) == -1 &&
              strstr(error_message(), "/nowhere/at/all.html"),
          "%s", error_message());
    report_free(&report);
}

void test_report(void) {
    RUN(case_page);
    RUN(case_page_of_many);
    RUN(case_page_of_tables);
    RUN(case_page_without_gnuplot);
    RUN(case_figure_missing);
    RUN(case_page_not_writable);
}
