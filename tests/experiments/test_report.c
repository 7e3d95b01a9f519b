/* Reports: the tables in the terminal, and the page. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../experiments/report/gnuplot.h"
#include "../../experiments/report/report.h"
#include "../../ref/error.h"
#include "../data/scratch.h"
#include "cli.h"
#include "study_sample.h"

/* ---- the report ------------------------------------------------------------------------------ */

static void case_terminal(void) {
    Study study = sample_study();
    study.row[3].accuracy = study.row[3].perplexity = study.row[3].seconds = NAN;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    CHECK(out && report_terminal(out, &study) == 0, "%s", error_message());
    fclose(out);
    static const char *const expected[] = {"resnet8 on synthetic, sgd",
                                           "72.5 %",
                                           "measured",
                                           "closed form",
                                           "published",
                                           "86.9 %",
                                           "639",
                                           "Table 2",
                                           "for orientation only",
                                           "1.25 times the mean",
                                           "0.67 times the time per update",
                                           "0.56 times the P+G+S",
                                           "1.39"};
    for (size_t e = 0; e < sizeof expected / sizeof *expected; e++)
        CHECK(strstr(text, expected[e]), "\"%s\" is missing", expected[e]);
    CHECK(!strstr(text, "nan"), "a NaN is shown");
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        CHECK(strlen(line) <= 100, "%zu columns: %s", strlen(line), line);
    free(text);
    study_free(&study);
}

/* The same training elsewhere is another group, and its title says where. */
static void case_devices_apart(void) {
    Study study = sample_study();
    int *before = calloc((size_t)study.rows, sizeof *before), groups = study_groups(&study, before);
    for (int r = 0; r < 2; r++) {
        snprintf(study.row[r].device, H5_NAME, "%s", r ? "cuda" : "cpu");
        snprintf(study.row[r].precision, H5_NAME, "%s", r ? "bf16" : "fp32");
    }
    int *group = calloc((size_t)study.rows, sizeof *group);
    CHECK(
        before[0] == before[1] && study_groups(&study, group) == groups + 1 && group[0] != group[1],
        "groups %d and %d", group[0], group[1]);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    CHECK(out && report_terminal(out, &study) == 0, "%s", error_message());
    fclose(out);
    CHECK(strstr(text, "on synthetic, sgd\n") && strstr(text, "on synthetic, sgd, cuda in bf16\n"),
          "%s", text);
    free(text);
    free(before);
    free(group);
    study_free(&study);
}

static void case_page(void) {
    Study study = sample_study();
    bool drawn;
    CHECK(report_html(&study, scratch_path("page.html"), &drawn) == 0, "%s", error_message());
    size_t count;
    char *text = read_bytes("page.html", &count);
    if (CHECK(count > 0, "no page")) {
        CHECK(strstr(text, "72.5 %") && strstr(text, "395"), "values are missing");
        CHECK(!strstr(text, "<script>") && strstr(text, "&lt;script&gt;&amp;"), "not escaped");
        CHECK(!strstr(text, "src=") && !strstr(text, "url(") && !strstr(text, "<link"),
              "something is loaded");
        size_t figures = 0;
        for (const char *at = text; (at = strstr(at, "<svg")); at++) figures++;
        CHECK(drawn == gnuplot_present() && figures == (drawn ? 8 : 0), "%zu figures", figures);
        CHECK(drawn || strstr(text, "apt-get install gnuplot-nox"), "no advice");
    }
    free(text);
    study_free(&study);
}

/* A page can always be made: without gnuplot it says how to get the figures. */
static void case_page_without_gnuplot(void) {
    char keep[4096];
    const char *old = getenv("PATH");
    snprintf(keep, sizeof keep, "%s", old ? old : "");
    Study study = sample_study();
    bool drawn = true;
    setenv("PATH", "/nowhere", 1);
    int status = report_html(&study, scratch_path("plain.html"), &drawn);
    setenv("PATH", keep, 1);
    CHECK(status == 0 && !drawn, "%d %s", status, error_message());
    size_t count;
    char *text = read_bytes("plain.html", &count);
    CHECK(strstr(text, "apt-get install gnuplot-nox") && strstr(text, "72.5 %"), "page");
    free(text);
    study_free(&study);
}

static void case_page_not_writable(void) {
    Study study = sample_study();
    bool drawn;
    CHECK(report_html(&study, "/nowhere/at/all.html", &drawn) == -1 &&
              strstr(error_message(), "/nowhere/at/all.html"),
          "%s", error_message());
    study_free(&study);
}

void test_report(void) {
    RUN(case_terminal);
    RUN(case_devices_apart);
    RUN(case_page);
    RUN(case_page_without_gnuplot);
    RUN(case_page_not_writable);
}
