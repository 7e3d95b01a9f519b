/* Studies and reports: the published tables, the convergence rule, the file, the page. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../experiments/gnuplot.h"
#include "../../experiments/report.h"
#include "../../ref/error.h"
#include "../test.h"

/* ---- the paper ------------------------------------------------------------------------------- */

static void case_published_multipliers(void) {
    static const struct {
        const char *row, *optimizer;
        double multiplier;
    } audit[] = {{"ResNet8", "adam", 0.79},
                 {"ResNet14", "adam", 0.76},
                 {"ResNet20", "adam", 0.55},
                 {"GPT2-wiki", "adam", 2.78},
                 {"GPT2-web", "adam", 2.09}};
    size_t found = 0;
    for (size_t r = 0; r < paper_row_count; r++)
        for (size_t a = 0; a < sizeof audit / sizeof *audit; a++)
            if (paper_rows[r].table == 2 && paper_rows[r].submodels == 3 &&
                !strcmp(paper_rows[r].row, audit[a].row) &&
                !strcmp(paper_rows[r].optimizer, audit[a].optimizer)) {
                found++;
                CHECK(fabs(paper_multiplier(&paper_rows[r]) - audit[a].multiplier) <= 0.005,
                      "%s: %g", audit[a].row, paper_multiplier(&paper_rows[r]));
            }
    CHECK(found == 5, "%zu rows", found);
    CHECK(fabs(paper_mean_multiplier("adam", -1) - 1.39) <= 0.005, "%g",
          paper_mean_multiplier("adam", -1));
    CHECK(fabs(paper_mean_multiplier("adam", 0) - 2.44) <= 0.005, "%g",
          paper_mean_multiplier("adam", 0));
    CHECK(fabs(paper_mean_multiplier("adam", 1) - 0.70) <= 0.005, "%g",
          paper_mean_multiplier("adam", 1));
}

/* The language rows are consistent only if "Acc" is ten times the perplexity, cut off. */
static void case_published_perplexity(void) {
    int checked = 0;
    for (size_t r = 0; r < paper_row_count; r++) {
        const PaperRow *row = &paper_rows[r];
        if (row->score_kind == SCORE_ACCURACY) continue;
        double error = exp(row->loss) - paper_score(row);
        double allowed = row->score_kind == SCORE_PERPLEXITY ? 2e-3 * paper_score(row) : 0.1;
        CHECK(fabs(error) <= allowed, "table %d %s: loss %g, perplexity %g", row->table, row->row,
              row->loss, paper_score(row));
        checked++;
    }
    CHECK(checked == 22, "%d rows", checked);
}

static void case_published_twins(void) {
    bool exact;
    const PaperRow *row = paper_find("resnet8", "cifar10", true, "sgd", 3, &exact);
    CHECK(row && exact && row->duration == 395, "resnet8");
    row = paper_find("resnet8", "synthetic", true, "sgd", 3, &exact);
    CHECK(row && !exact && row->duration == 395, "other data");
    row = paper_find("gpt:layers=2", "text", false, "adamw", 4, &exact);
    CHECK(row && !exact && row->table == 11 && row->duration == 60, "adamw, a quarter");
    CHECK(!paper_find("resnet8", "cifar10", true, "sgd", 7, &exact), "sevenths");
}

/* ---- a study made by hand -------------------------------------------------------------------- */

enum { STEPS = 200 };

/* The loss is 3 exp(-rate step): every point on the way is known. */
static void add_training(Study *study, const char *model, bool images, int submodels, double rate) {
    StudyRow *row = study_add(study);
    if (!row) abort();
    snprintf(row->name, sizeof row->name, "%s-%d", images ? "images" : "text", submodels);
    snprintf(row->model, sizeof row->model, "%s", model);
    snprintf(row->input, sizeof row->input, "%s", images ? "images" : "tokens");
    snprintf(row->data, sizeof row->data, "%s", images ? "synthetic" : "text");
    snprintf(row->optimizer, sizeof row->optimizer, "sgd");
    snprintf(row->method, sizeof row->method, "%s", submodels > 1 ? "BCD" : "full");
    snprintf(row->spec, sizeof row->spec, "resnet:depth=8");
    snprintf(row->command, sizeof row->command, "bcd train --note \"<script>&\"");
    options_defaults(&row->settings, COMMAND_TRAIN);
    row->settings.steps = 1; /* as if resolved */
    row->settings.context = row->settings.batch = 1;
    row->submodels = submodels;
    row->parameters = 77850;
    row->batch = 32;
    row->steps = STEPS;
    row->seed = 1;
    row->lr = 0.1;
    row->imbalance = submodels > 1 ? 0.25 : 0;
    row->epochs = 4;
    row->valid_loss = 0.71;
    row->accuracy = 0.7251;
    row->perplexity = exp(0.71);
    row->seconds = submodels > 1 ? 20 : 30;
    row->rate = STEPS * 32 / row->seconds;
    double mib = 1024 * 1024, w = 3 * mib;
    row->peak[MEM_PARAMETERS] = w;
    row->peak[MEM_GRADIENTS] = row->peak[MEM_STATE] = w / submodels;
    row->peak[MEM_ACTIVATIONS] = 5 * mib;
    row->peak[MEM_BUFFERS] = row->peak[MEM_CACHE] = row->peak[MEM_WORKSPACE] = 0;
    row->peak[MEM_ROLES] = 8 * mib + 2 * w / submodels;
    row->closed_form = w * (1 + 2.0 / submodels);
    row->curve = calloc(STEPS, sizeof *row->curve);
    row->evaluation = calloc(4, sizeof *row->evaluation);
    if (!row->curve || !row->evaluation) abort();
    for (int s = 0; s < STEPS; s++)
        row->curve[s] = (CurveRow){.step = (uint64_t)s + 1,
                                   .samples = 32 * ((uint64_t)s + 1),
                                   .loss = 3 * exp(-rate * (s + 1)),
                                   .lr = 0.1,
                                   .submodel = s / 20 % submodels,
                                   .seconds = row->seconds * (s + 1) / STEPS};
    for (int e = 0; e < 4; e++)
        row->evaluation[e] = (EvaluationRow){.step = 50 * ((uint64_t)e + 1),
                                             .loss = 1 - 0.07 * e,
                                             .accuracy = 0.5 + 0.07 * e,
                                             .perplexity = exp(1 - 0.07 * e)};
    row->curve_rows = STEPS;
    row->evaluation_rows = 4;
}

static Study sample_study(void) {
    Study study = {0};
    add_training(&study, "resnet8", true, 1, 0.02);
    add_training(&study, "resnet8", true, 3, 0.01);
    add_training(&study, "gpt:layers=2,width=64,heads=2,context=32", false, 1, 0.005);
    add_training(&study, "gpt:layers=2,width=64,heads=2,context=32", false, 3, 0.008);
    CHECK(study_converge(&study) == 0, "%s", error_message());
    return study;
}

static void scratch_path(char path[256], const char *name) {
    const char *dir = getenv("TMPDIR");
    snprintf(path, 256, "%s/bcd-report-%ld-%s", dir ? dir : "/tmp", (long)getpid(), name);
}

static char *read_text(const char *path) {
    FILE *in = fopen(path, "r");
    if (!in) return NULL;
    char *text = calloc(1, 1 << 22);
    if (text) text[fread(text, 1, (1 << 22) - 1, in)] = 0;
    fclose(in);
    return text;
}

/* ---- convergence ----------------------------------------------------------------------------- */

static void case_smoothing(void) {
    CurveRow curve[10] = {0};
    double smooth[10];
    for (int i = 0; i < 10; i++) curve[i].loss = i * i;
    study_smooth(smooth, curve, 10, 3);
    CHECK(smooth[0] == 0 && smooth[1] == 0.5, "start: %g %g", smooth[0], smooth[1]);
    for (int i = 2; i < 10; i++) {
        double mean = (i * i + (i - 1) * (i - 1) + (i - 2) * (i - 2)) / 3.0;
        CHECK(fabs(smooth[i] - mean) <= 1e-12, "%d: %g, not %g", i, smooth[i], mean);
    }
}

/* The window is 10 updates.  BCD ends near 3 exp(-0.01 200), the level; the full update, twice as
 * fast, is there after half of the steps, but for the lag of the window. */
static void case_multiplier(void) {
    Study study = sample_study();
    const StudyRow *full = &study.row[0], *bcd = &study.row[1];
    CHECK(bcd->steps_to_converge == STEPS, "BCD after %g", bcd->steps_to_converge);
    CHECK(full->steps_to_converge >= 100 && full->steps_to_converge <= 105, "full after %g",
          full->steps_to_converge);
    CHECK(fabs(bcd->multiplier - STEPS / full->steps_to_converge) <= 1e-12, "B-F %g",
          bcd->multiplier);
    CHECK(full->multiplier == 1, "B-F of the full update %g", full->multiplier);
    CHECK(full->epochs_to_converge == full->steps_to_converge / 50, "epochs %g",
          full->epochs_to_converge);
    CHECK(full->level == bcd->level, "levels %g %g", full->level, bcd->level);
    /* The other way round: there BCD is faster. */
    CHECK(study.row[3].multiplier < 1 && study.row[2].steps_to_converge == STEPS, "B-F %g",
          study.row[3].multiplier);
    study_free(&study);
}

/* ---- the file -------------------------------------------------------------------------------- */

static void case_file_round_trip(void) {
    char path[256];
    scratch_path(path, "study.h5");
    Study study = sample_study(), read = {0};
    study.row[1].accuracy = NAN;
    CHECK(study_write(&study, path) == 0, "%s", error_message());
    CHECK(study_read(&read, path) == 0, "%s", error_message());
    CHECK(read.rows == study.rows, "%d rows", read.rows);
    for (int r = 0; r < read.rows && r < study.rows; r++) {
        StudyRow *a = &study.row[r], *b = &read.row[r];
        for (int c = 0; c < study_column_count; c++) {
            const H5Column *column = &study_columns[c].column;
            size_t size = column->kind == H5_TEXT ? strlen((char *)a + column->offset) + 1 : 8;
            CHECK(!memcmp((char *)a + column->offset, (char *)b + column->offset, size),
                  "row %d column %s", r, column->name);
        }
        CHECK(!strcmp(a->spec, b->spec) && !strcmp(a->command, b->command), "row %d: text", r);
        CHECK(b->curve_rows == STEPS && !memcmp(a->curve, b->curve, STEPS * sizeof *a->curve),
              "row %d: curve", r);
        CHECK(b->evaluation_rows == 4 && b->evaluation[3].accuracy == a->evaluation[3].accuracy,
              "row %d: evaluations", r);
    }
    study_free(&study);
    study_free(&read);
    remove(path);
}

/* Runs a command with everything it says in *text; its exit status. */
static int run(const char *command, char *text, size_t size) {
    char both[1100];
    snprintf(both, sizeof both, "%.1024s 2>&1", command);
    FILE *out = popen(both, "r");
    if (!out) return -1;
    text[fread(text, 1, size - 1, out)] = 0;
    int status = pclose(out);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void case_bad_files(void) {
    char good[256], bad[256], text[4096], command[1024];
    scratch_path(good, "good.h5");
    scratch_path(bad, "bad.h5");
    Study study = sample_study(), none = {0};
    CHECK(study_write(&study, good) == 0, "%s", error_message());
    study_free(&study);

    CHECK(study_read(&none, "/nowhere/validity.h5") == -1 && strstr(error_message(), "/nowhere"),
          "missing: %s", error_message());
    snprintf(command, sizeof command, "head -c 3000 %s > %s", good, bad);
    run(command, text, sizeof text);
    CHECK(study_read(&none, bad) == -1 && strstr(error_message(), bad), "cut: %s", error_message());
    H5File file;
    CHECK(h5_create(&file, bad) == 0, "%s", error_message());
    h5_set_text(&file, "/", "format", "something else");
    CHECK(h5_commit(&file) == 0, "%s", error_message());
    CHECK(study_read(&none, bad) == -1 && strstr(error_message(), "neither"), "foreign: %s",
          error_message());
    CHECK(h5_create(&file, bad) == 0, "%s", error_message());
    h5_set_text(&file, "/", "format", "bcd study");
    CHECK(h5_commit(&file) == 0, "%s", error_message());
    CHECK(study_read(&none, bad) == -1 && strstr(error_message(), bad), "no table: %s",
          error_message());
    study_free(&none);
    remove(good);
    remove(bad);
}

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

static void case_page(void) {
    char path[256];
    scratch_path(path, "page.html");
    Study study = sample_study();
    bool drawn;
    CHECK(report_html(&study, path, &drawn) == 0, "%s", error_message());
    char *text = read_text(path);
    if (CHECK(text, "no page")) {
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
    remove(path);
}

/* A page can always be made: without gnuplot it says how to get the figures. */
static void case_page_without_gnuplot(void) {
    char path[256], keep[4096];
    scratch_path(path, "plain.html");
    const char *old = getenv("PATH");
    snprintf(keep, sizeof keep, "%s", old ? old : "");
    Study study = sample_study();
    bool drawn = true;
    setenv("PATH", "/nowhere", 1);
    int status = report_html(&study, path, &drawn);
    setenv("PATH", keep, 1);
    CHECK(status == 0 && !drawn, "%d %s", status, error_message());
    char *text = read_text(path);
    CHECK(text && strstr(text, "apt-get install gnuplot-nox") && strstr(text, "72.5 %"), "page");
    free(text);
    study_free(&study);
    remove(path);
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
    RUN(case_published_multipliers);
    RUN(case_published_perplexity);
    RUN(case_published_twins);
    RUN(case_smoothing);
    RUN(case_multiplier);
    RUN(case_file_round_trip);
    RUN(case_bad_files);
    RUN(case_terminal);
    RUN(case_page);
    RUN(case_page_without_gnuplot);
    RUN(case_page_not_writable);
}
