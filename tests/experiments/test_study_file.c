/* The file of a study: written, read back, older, damaged. */
#include <hdf5.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../experiments/study/cases.h"
#include "../../ref/base/error.h"
#include "../data/scratch.h"
#include "../leak.h"
#include "cli.h"
#include "study_sample.h"

/* --multiplier takes the mean of what a file has: of language models or images, of Adam or SGD. */
static void multiplier_of_any_kind(void) {
    for (int kind = 0; kind < 4; kind++) {
        Study study = {0};
        double multiplier;
        const char *path = scratch_path("multiplier.h5");
        const char *model = kind / 2 ? "resnet8" : "gpt:layers=2,width=64,heads=2,context=32";
        sample_training(&study, model, kind / 2, 1, 0.02);
        sample_training(&study, model, kind / 2, 3, 0.01);
        for (int r = 0; r < 2; r++)
            snprintf(study.row[r].optimizer, sizeof study.row[r].optimizer, "%s",
                     kind % 2 ? "sgd" : "adam");
        CHECK(study_write(&study, path) == 0 && multiplier_read(&multiplier, path) == 0 &&
                  multiplier > 1,
              "%s, %s: %s", model, study.row[0].optimizer, error_message());
        study_free(&study);
    }
}

/* Files one after the other, of which one has trainings without curves. */
static void several_files(void) {
    Study bare = {0}, full = sample_study(), read = {0};
    StudyRow *row = study_add(&bare);
    *row = full.row[1];
    row->curve = NULL;
    row->evaluation = NULL;
    row->switches = NULL;
    row->curve_rows = row->evaluation_rows = row->switch_rows = 0;
    snprintf(row->settings.data_dir, sizeof row->settings.data_dir, "%0400d", 7);
    CHECK(study_write(&bare, scratch_path("bare.h5")) == 0 &&
              study_write(&full, scratch_path("full.h5")) == 0 &&
              study_read(&read, scratch_path("full.h5")) == 0 &&
              study_read(&read, scratch_path("bare.h5")) == 0 &&
              study_read(&read, scratch_path("full.h5")) == 0,
          "%s", error_message());
    if (CHECK(read.rows == 2 * full.rows + 1, "%d rows", read.rows)) {
        const StudyRow *first = &read.row[1], *none = &read.row[full.rows],
                       *last = &read.row[full.rows + 2];
        CHECK(none->curve_rows == 0 && !strcmp(none->settings.data_dir, row->settings.data_dir) &&
                  !strcmp(none->spec, row->spec),
              "bare: %zu rows, %s", none->curve_rows, none->settings.data_dir);
        CHECK(first->curve_rows == last->curve_rows && first->curve != last->curve &&
                  !memcmp(first->curve, last->curve, last->curve_rows * sizeof *last->curve) &&
                  !strcmp(first->switches[1].reason, last->switches[1].reason),
              "curves of the second file");
    }
    study_free(&bare);
    study_free(&full);
    study_free(&read);
}

static void round_trip(void) {
    const char *path = scratch_path("study.h5");
    Study study = sample_study(), read = {0};
    study.row[1].accuracy = NAN;
    CHECK(study_write(&study, path) == 0, "%s", error_message());
    CHECK(study_read(&read, path) == 0, "%s", error_message());
    CHECK(read.rows == study.rows, "%d rows", read.rows);
    for (int r = 0; r < read.rows && r < study.rows; r++) {
        StudyRow *a = &study.row[r], *b = &read.row[r];
        for (int c = 0; c < study_column_count; c++) {
            const H5Column *column = &study_columns[c];
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

static void an_empty_row(void) {
    Study study = {0};
    const char *row = (const char *)study_add(&study);
    for (int c = 0; c < study_column_count; c++) {
        const H5Column *column = &study_columns[c];
        double number;
        int64_t whole;
        memcpy(&number, row + column->offset, sizeof number);
        memcpy(&whole, row + column->offset, sizeof whole);
        CHECK(column->kind == H5_DOUBLE ? isnan(number) : whole == 0, "%s: %g", column->name,
              number);
    }
    study_free(&study);
}

/* 10 updates of 4 samples of 8 targets in 2 seconds, of 5 updates to an epoch. */
static void a_run_is_a_row(void) {
    Study study = {0};
    RunFile run = {.parameters = 77, .steps_per_epoch = 5, .imbalance = 0.25, .submodels = 2};
    Options *o = &run.settings;
    options_defaults(o);
    CHECK(options_set_all(o,
                          "model=gpt2 batch=4 seed=9 optimizer=adamw switch-every=3e "
                          "order=descending precision=fp32") == 0,
          "%s", error_message());
    strcpy(run.spec, "gpt:layers=2,width=8,heads=2,context=8,vocabulary=16");
    strcpy(run.data, "text");
    run.checksum = 0xAB;
    run.provenance.threads = 6;
    runfile_add(&run, RUN_CURVE, &(CurveRow){.step = 1, .samples = 4, .seconds = 1});
    runfile_add(&run, RUN_CURVE, &(CurveRow){.step = 10, .samples = 40, .seconds = 2});
    runfile_add(&run, RUN_EVALUATIONS, &(EvaluationRow){.step = 1});
    runfile_add(&run, RUN_EVALUATIONS,
                &(EvaluationRow){.step = 10, .loss = 3, .accuracy = 0.5, .perplexity = 20});
    runfile_add(&run, RUN_SWITCHES, &(SwitchRow){.step = 0});
    for (int role = 0; role <= MEM_ROLES; role++) run.memory[role].peak = 100 + (uint64_t)role;
    if (!CHECK(study_add_run(&study, &run, "mine") == 0, "%s", error_message())) return;
    const StudyRow *row = study.row;
    const struct {
        const char *is, *was;
    } texts[] = {{row->name, "mine"},    {row->model, "gpt2"},
                 {row->data, "text"},    {row->optimizer, "adamw"},
                 {row->method, "BCD"},   {row->order, "descending"},
                 {row->switching, "3e"}, {row->checksum, "00000000000000ab"},
                 {row->spec, run.spec},  {row->input, "tokens"}};
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
        CHECK(!strcmp(texts[t].is, texts[t].was), "%s, not %s", texts[t].is, texts[t].was);
    CHECK(row->submodels == 2 && row->parameters == 77 && row->batch == 4 && row->seed == 9 &&
              row->threads == 6 && row->imbalance == 0.25 && row->steps == 10 && row->epochs == 2 &&
              row->seconds == 2 && row->rate == 40 * 8 / 2,
          "%" PRId64 " steps, %g epochs, %g targets a second", row->steps, row->epochs, row->rate);
    CHECK(row->valid_loss == 3 && row->accuracy == 0.5 && row->perplexity == 20, "results");
    /* Adam in two parts: W (1 + 3/2) with 4 bytes for each parameter of the model. */
    Model *model = model_create(run.spec);
    CHECK(model && row->closed_form == 10 * (double)model->param_count, "%g bytes",
          row->closed_form);
    model_free(model);
    for (int role = 0; role <= MEM_ROLES; role++)
        CHECK(row->peak[role] == 100 + role, "role %d: %g bytes", role, row->peak[role]);
    CHECK(row->curve_rows == 2 && row->evaluation_rows == 2 && row->switch_rows == 1 &&
              !run.curve && !run.evaluations && !run.switches && !run.curve_rows &&
              !run.evaluation_rows && !run.switch_rows,
          "the curves are moved");
    study_free(&study);
    runfile_free(&run);
}

/* As it is before the first training is done. */
static void without_rows(void) {
    Study none = {0}, read = {0};
    const char *path = scratch_path("none.h5");
    CHECK(study_write(&none, path) == 0 && study_read(&read, path) == 0 && read.rows == 0,
          "%d rows: %s", read.rows, error_message());
    study_free(&read);
}

static void without(const char *path, const char *object) {
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    CHECK(file >= 0 && H5Ldelete(file, object, H5P_DEFAULT) >= 0, "%s: %s", path, object);
    H5Fclose(file);
}

/* An older file has no column for a flag that came later, which takes its default.  One without
 * default is refused. */
static void a_setting_is_missing(void) {
    const char *path = scratch_path("older.h5");
    Study study = sample_study(), read = {0};
    study.row[0].settings.order = ORDER_DESCENDING;
    CHECK(study_write(&study, path) == 0, "%s", error_message());
    without(path, "/settings/epochs"); /* the steps say it */
    without(path, "/settings/order");
    CHECK(study_read(&read, path) == 0 && read.row[0].settings.order == ORDER_CYCLIC, "%s",
          error_message());
    without(path, "/settings/lr");
    CHECK(study_read(&read, path) == -1 && strstr(error_message(), "older.h5: /settings has no lr"),
          "without lr: %s", error_message());
    study_free(&study);
    study_free(&read);
}

/* All runs that have not finished are named, in one line. */
static void unfinished_runs(void) {
    static const char *const names[] = {"one", "two"};
    Study read = {0};
    for (int i = 0; i < 2; i++) {
        char path[16];
        RunFile file;
        snprintf(path, sizeof path, "%s/run.h5", names[i]);
        run(0, "train " RESNET "--steps 2 --quiet --out %s", names[i]);
        if (!read_run(&file, names[i])) continue;
        strcpy(file.status, "interrupted");
        CHECK(runfile_write(&file, scratch_path(path)) == 0, "%s", error_message());
        runfile_free(&file);
        CHECK(study_read(&read, scratch_path(path)) == 0, "%s", error_message());
    }
    CHECK(!strcmp(read.unfinished.text, "not at its end: one (interrupted), two (interrupted)"),
          "%s", read.unfinished.text);
    without(scratch_path("two/run.h5"), "/curve/loss");
    CHECK(study_read(&read, scratch_path("two/run.h5")) == -1 &&
              strstr(error_message(), "/curve/loss: is missing"),
          "without its losses: %s", error_message());
    study_free(&read);
}

static void bad_files(void) {
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
    h5_set(&file, "/", "version", H5_INT, &(int){1});
    CHECK(h5_commit(&file) == 0, "%s", error_message());
    CHECK(study_read(&none, bad) == -1 && strstr(error_message(), "version 1"), "old: %s",
          error_message());
    study_free(&none);
}

static void check_refused(StudyRow *row, const char *why) {
    CHECK(study_check(row, "some.h5") == -1 && strstr(error_message(), "some.h5: images-3: ") &&
              strstr(error_message(), why),
          "%s: %s", why, error_message());
}

/* What no training leaves behind. */
static void nonsense_is_refused(void) {
    Study study = sample_study();
    StudyRow *row = &study.row[1];
    CHECK(study_check(row, "some.h5") == 0, "%s", error_message());
    row->curve[7].loss = NAN;
    check_refused(row, "the loss of update 8 is nan");
    row->curve[7].loss = 1;
    row->curve[5].step = row->curve[4].step;
    check_refused(row, "row 6 of its curve is before row 5");
    row->curve[5].step++;
    row->curve[5].seconds = 0;
    check_refused(row, "row 6 of its curve is before row 5");
    row->curve[5].seconds = row->curve[4].seconds;
    row->evaluation[2].step = 1;
    check_refused(row, "evaluation 3 is before evaluation 2");
    row->evaluation[2].step = row->evaluation[1].step;
    row->submodels = 0;
    check_refused(row, "0 submodels");
    row->submodels = 3;
    row->steps = 0;
    CHECK(study_check(row, "some.h5") == 0, "without updates: %s", error_message());
    row->batch = 0;
    check_refused(row, "updates of 0 samples");
    study_free(&study);
}

static void write_and_read(void) {
    Study study = sample_study(), read = {0};
    double multiplier;
    const char *path = scratch_path("again.h5");
    CHECK(study_write(&study, path) == 0 && study_read(&read, path) == 0 &&
              study_read(&read, path) == 0 && multiplier_read(&multiplier, path) == 0,
          "%s", error_message());
    study_free(&study);
    study_free(&read);
    CHECK(study_read(&read, "/nowhere/validity.h5") == -1, "missing");
    CHECK(study_read(&read, scratch_text("bad.h5", "not HDF5 at all")) == -1, "text");
    study_free(&read);
}

static void nothing_is_left(void) {
    CHECK(allocations_left(write_and_read) == 0, "memory is not freed");
    CHECK(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL) == 0, "HDF5 objects are open");
}

void test_study_file(void) {
    RUN(nonsense_is_refused);
    RUN(multiplier_of_any_kind);
    RUN(several_files);
    RUN(round_trip);
    RUN(without_rows);
    RUN(a_setting_is_missing);
    RUN(unfinished_runs);
    RUN(bad_files);
    RUN(an_empty_row);
    RUN(a_run_is_a_row);
    RUN(nothing_is_left);
}
