/* Studies: the published tables, the convergence rule, the file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../experiments/study/operations.h"
#include "../../experiments/study/paper.h"
#include "../../ref/error.h"
#include "../data/scratch.h"
#include "cli.h"
#include "study_sample.h"

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
    const PaperRow *row = paper_find("resnet8", "cifar10", true, "sgd", 3, 1, &exact);
    CHECK(row && exact && row->duration == 395, "resnet8");
    row = paper_find("resnet8", "synthetic", true, "sgd", 3, 1, &exact);
    CHECK(row && !exact && row->duration == 395, "other data");
    row = paper_find("gpt:layers=2", "text", false, "adamw", 4, 1, &exact);
    CHECK(row && !exact && row->table == 11 && row->duration == 60, "adamw, a quarter");
    CHECK(!paper_find("resnet8", "cifar10", true, "sgd", 7, 1, &exact), "sevenths");
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
    study.row[2].evaluation[3].loss = 0.5; /* the full update gets lower, and is there earlier */
    CHECK(study_converge(&study) == 0, "%s", error_message());
    CHECK(study.row[2].valid_level == study.row[3].evaluation[3].loss &&
              study.row[2].valid_steps == 200 && study.row[3].valid_steps == 200,
          "level %g", study.row[2].valid_level);
    study.row[2].evaluation[1].loss = 0.5;
    CHECK(study_converge(&study) == 0 && study.row[2].valid_steps == 100 &&
              study.row[3].valid_multiplier == 2,
          "validation: %g, %g", study.row[2].valid_steps, study.row[3].valid_multiplier);
    const StudyRow *full = &study.row[0], *bcd = &study.row[1];
    CHECK(bcd->steps_to_converge == SAMPLE_STEPS, "BCD after %g", bcd->steps_to_converge);
    CHECK(full->steps_to_converge >= 100 && full->steps_to_converge <= 105, "full after %g",
          full->steps_to_converge);
    CHECK(fabs(bcd->multiplier - SAMPLE_STEPS / full->steps_to_converge) <= 1e-12, "B-F %g",
          bcd->multiplier);
    CHECK(full->multiplier == 1, "B-F of the full update %g", full->multiplier);
    CHECK(full->epochs_to_converge == full->steps_to_converge / 50, "epochs %g",
          full->epochs_to_converge);
    CHECK(full->level == bcd->level, "levels %g %g", full->level, bcd->level);
    /* Validation losses 1 - 0.07 e, the same for both: reached at the same evaluation. */
    CHECK(bcd->valid_steps == 200 && bcd->valid_multiplier == 1, "validation: %g, %g",
          bcd->valid_steps, bcd->valid_multiplier);
    /* The other way round: there BCD is faster. */
    CHECK(study.row[3].multiplier < 1 && study.row[2].steps_to_converge == SAMPLE_STEPS, "B-F %g",
          study.row[3].multiplier);
    study_free(&study);
}

/* By the validation loss: the full update gets down to 0.5, BCD to 0.79 at its last evaluation;
 * that is the level, which the full update has reached at its second. */
static void case_validation_multiplier(void) {
    Study study = sample_study();
    study.row[0].evaluation[1].loss = 0.5;
    CHECK(study_converge(&study) == 0, "%s", error_message());
    const StudyRow *full = &study.row[0], *bcd = &study.row[1];
    CHECK(bcd->valid_level == bcd->evaluation[3].loss, "level %g", bcd->valid_level);
    CHECK(full->valid_steps == 100 && bcd->valid_steps == 200 && bcd->valid_multiplier == 2,
          "after %g and %g", full->valid_steps, bcd->valid_steps);
    study_free(&study);
}

/* ---- the file -------------------------------------------------------------------------------- */

static void case_file_round_trip(void) {
    const char *path = scratch_path("study.h5");
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
        CHECK(!strcmp(a->spec, b->spec) && !strcmp(a->provenance.command, b->provenance.command) &&
                  a->provenance.wall == b->provenance.wall,
              "row %d: text", r);
        CHECK(b->switch_rows == a->switch_rows &&
                  !strcmp(b->switches[1].reason, a->switches[1].reason) &&
                  b->switches[1].window_loss == a->switches[1].window_loss &&
                  isnan(b->switches[0].window_loss),
              "row %d: switches", r);
        CHECK(b->curve_rows == SAMPLE_STEPS &&
                  !memcmp(a->curve, b->curve, SAMPLE_STEPS * sizeof *a->curve),
              "row %d: curve", r);
        CHECK(b->evaluation_rows == 4 && b->evaluation[3].accuracy == a->evaluation[3].accuracy,
              "row %d: evaluations", r);
    }
    study_free(&study);
    study_free(&read);
}

static void case_bad_files(void) {
    Study study = sample_study(), none = {0};
    CHECK(study_write(&study, scratch_path("good.h5")) == 0, "%s", error_message());
    study_free(&study);
    CHECK(study_read(&none, "/nowhere/validity.h5") == -1 && strstr(error_message(), "/nowhere"),
          "missing: %s", error_message());

    size_t count;
    char *bytes = read_bytes("good.h5", &count);
    const char *bad = scratch_file("bad.h5", bytes, count / 2);
    free(bytes);
    CHECK(study_read(&none, bad) == -1 && strstr(error_message(), bad), "cut: %s", error_message());
    bad = scratch_text("bad.h5", "not HDF5 at all");
    CHECK(study_read(&none, bad) == -1 && strstr(error_message(), bad), "text: %s",
          error_message());
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
    CHECK(h5_create(&file, bad) == 0, "%s", error_message());
    h5_set_text(&file, "/", "format", "bcd study");
    h5_set_int(&file, "/", "version", 1);
    CHECK(h5_commit(&file) == 0, "%s", error_message());
    CHECK(study_read(&none, bad) == -1 && strstr(error_message(), "version 1"), "old: %s",
          error_message());
    study_free(&none);
}

/* A transformer small enough to count by hand: products of linear layers, the same number in each
 * phase, and attention.  The output shares the embedding's matrix, which trains with the embedding.
 */
static void case_operations(void) {
    enum { T = 8, C = 16, V = 256 };
    const double linear = 2.0 * T * C * (3 * C + C + 4 * C + 4 * C), head = 2.0 * T * C * V,
                 attention = 2.0 * T * T * C, forward = linear + head + attention,
                 backward = linear + head + 2.5 * attention;
    const double expected[] = {forward + backward + head, forward + backward + linear,
                               forward + head};
    CurveRow curve[3] = {{.submodel = 0}, {.submodel = 1}, {.submodel = 2}};
    StudyRow row = {.submodels = 3, .batch = 4, .curve = curve, .curve_rows = 3};
    strcpy(row.spec, "gpt:layers=1,width=16,heads=2,context=8,vocabulary=256");
    if (!CHECK(study_operations(&row) == 0, "%s", error_message())) return;
    for (int i = 0; i < 3; i++) {
        double step = row.operations[i] - (i ? row.operations[i - 1] : 0);
        CHECK(step == 4 * expected[i], "submodel %d: %g instead of %g", i + 1, step,
              4 * expected[i]);
        CHECK(study_at(&row, (size_t)i, AXIS_OPERATIONS) == row.operations[i], "axis");
    }
    curve[0].submodel = curve[1].submodel = curve[2].submodel = 0;
    row.submodels = 1;
    CHECK(study_operations(&row) == 0 &&
              row.operations[2] == 3 * 4 * (forward + backward + linear + head),
          "full: %g", row.operations ? row.operations[2] : NAN);
    strcpy(row.settings.partition, "0/1,2");
    CHECK(study_operations(&row) == -1 && !row.operations &&
              isnan(study_at(&row, 0, AXIS_OPERATIONS)),
          "two submodels that are one");
    row.submodels = 2;
    curve[1].submodel = 2;
    CHECK(study_operations(&row) == -1 && !row.operations &&
              strstr(error_message(), "submodel 3 of 2"),
          "%s", error_message());
    strcpy(row.spec, "nothing");
    CHECK(study_operations(&row) == -1, "no such model");
}

void test_study(void) {
    RUN(case_published_multipliers);
    RUN(case_published_perplexity);
    RUN(case_published_twins);
    RUN(case_smoothing);
    RUN(case_multiplier);
    RUN(case_validation_multiplier);
    RUN(case_file_round_trip);
    RUN(case_bad_files);
    RUN(case_operations);
}
