/* `bcd experiment validity`, through the program as it is used. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../experiments/study/study.h"
#include "../../experiments/tables/table.h"
#include "../../ref/base/error.h"
#include "../data/scratch.h"
#include "cli.h"
#include "report_sample.h"

static int read_table(Study *study, const char *dir) {
    char name[64];
    snprintf(name, sizeof name, "%s/validity.h5", dir);
    return study_read(study, scratch_path(name));
}

static void check_row(const StudyRow *row) {
    CHECK(row->steps == 12 && row->curve_rows == 12, "%s: %d steps", row->name, (int)row->steps);
    CHECK(isfinite(row->train_loss) && isfinite(row->valid_loss) && row->multiplier > 0,
          "%s: loss %g, B-F %g", row->name, row->train_loss, row->multiplier);
    CHECK(row->peak[MEM_PARAMETERS] == 4.0 * (double)row->parameters, "%s: peak", row->name);
    CHECK(row->seconds > 0 && row->rate > 0 && *row->provenance.commit && *row->provenance.command,
          "%s", row->name);
    CHECK(row->provenance.wall >= row->seconds && *row->provenance.compiler, "%s: %g s of %g",
          row->name, row->seconds, row->provenance.wall);
    CHECK(row->switch_rows > 0 && strcmp(row->switches[0].reason, "start") == 0, "%s", row->name);
    CHECK(strcmp(row->method, row->submodels == 1 ? "full" : "BCD") == 0, "%s", row->method);
}

static void case_whole_experiment(void) {
    Study study = {0};
    const Printed *printed =
        run(0, "experiment validity --preset smoke --threads 1 --steps 12 --out whole");
    CHECK(strstr(printed->out, "row 1 of 8") && strstr(printed->out, "row 8 of 8"), "%s",
          printed->out);
    if (CHECK(read_table(&study, "whole") == 0 && study.rows == 8, "%s", error_message()))
        for (int r = 0; r < study.rows; r++) {
            check_row(&study.row[r]);
            /* Less memory for gradients and state is the point of it all. */
            if (study.row[r].submodels > 1)
                CHECK(study.row[r].peak[MEM_STATE] < study.row[r - 1].peak[MEM_STATE], "%s: state",
                      study.row[r].name);
        }
    study_free(&study);
    run(0, "report whole/validity.h5 --study whole/again.h5");
    CHECK(study_read(&study, scratch_path("whole/again.h5")) == 0 && study.rows == 8, "%s",
          error_message());
    study_free(&study);
    printed = run(0, "report whole/validity.h5");
    CHECK(strstr(printed->out, "BCD-1/3") && (strstr(printed->out, "\nno page: ") ||
                                              file_exists(scratch_path("whole/report.html"))),
          "%s", printed->out);
}

/* As long as so many epochs, not steps; each entry in its own ways; curves in fewer rows. */
static void case_epochs_and_thin_curves(void) {
    if (TEST_SANITIZED) SKIP("trainings are watched in the whole experiment");
    Study study = {0};
    run(0, "experiment converged --preset smoke --threads 1 --out thin");
    if (CHECK(study_read(&study, scratch_path("thin/converged.h5")) == 0 && study.rows == 2, "%s",
              error_message())) {
        CHECK(study.row[0].steps == 36 && study.row[0].curve_rows == 2, "full: %zu rows",
              study.row[0].curve_rows);
        CHECK(study.row[0].curve[0].step == 20 && study.row[0].curve[1].step == 36, "of 20");
        CHECK(study.row[1].curve_rows == 9 && study.row[1].curve[0].step == 4,
              "BCD, phases of 4: %zu rows", study.row[1].curve_rows);
        CHECK(
            study.row[0].settings.optimizer.lr == 0.1 && study.row[1].settings.optimizer.lr == 0.05,
            "rates of their own");
    }
    study_free(&study);
}

static void case_seeds_have_means(void) {
    if (TEST_SANITIZED)
        SKIP("trainings are watched in the whole experiment, means in study_tables");
    const Printed *printed =
        run(0,
            "experiment compression --preset smoke --models resnet:depth=8,width=2 --optimizers "
            "sgd --threads 1 --seeds 3 --steps 12 --out seeds");
    CHECK(strstr(printed->out, "row 9 of 9"), "%s", printed->out);
    printed = run(0, "report seeds/compression.h5");
    CHECK(strstr(printed->out, "Table 10: ") &&
              strstr(printed->out, "\n  here: resnet-8x2 synthetic[:96] sgd 1/3 x.9 ") &&
              strstr(printed->out, " \u00B1 "),
          "%s", printed->out);
    for (char *line = strtok((char *)printed->out, "\n"); line; line = strtok(NULL, "\n"))
        CHECK(strlen(line) <= 100 + count_of(line, "\u00B1"), "%zu bytes: %s", strlen(line), line);
}

/* Experiments in one directory share trainings, but each table has its own rows; those of an
 * earlier command for the same table stay. */
static void case_shared_rows(void) {
    static const char common[] =
        "--preset smoke --models gpt:layers=3,width=16,heads=2,context=16 --optimizers adam "
        "--threads 1 --steps 4 --out shared";
    Study study = {0};
    run(0, "experiment validity %s", common);
    const Printed *printed = run(0, "experiment ufp %s", common);
    CHECK(strstr(printed->out, "bcd3: done before"), "%s", printed->out);
    CHECK(study_read(&study, scratch_path("shared/ufp.h5")) == 0 && study.rows == 4, "%d rows",
          study.rows);
    study_free(&study);
    run(0, "experiment validity %s --submodels 2", common);
    if (CHECK(read_table(&study, "shared") == 0 && study.rows == 3, "%d rows", study.rows))
        CHECK(study.row[1].submodels == 2 && study.row[2].submodels == 3, "M of the rows");
    study_free(&study);
}

/* Trained at the same time or one after the other: the same checkpoints. */
static void case_at_the_same_time(void) {
    if (TEST_SANITIZED) SKIP("jobs are watched where they are left alone");
    static const char common[] =
        "experiment validity --preset smoke --models gpt:layers=3,width=16,heads=2,context=16 "
        "--seeds 2";
    run(0, "%s --steps 12 --threads 1 --out by-one", common);
    const Printed *printed = run(0, "%s --steps 12 --jobs 3 --out by-three", common);
    CHECK(count_of(printed->out, "seed2: trained") == 4 && !strstr(printed->out, " steps in "),
          "%s", printed->out);
    check_same_checkpoint(
        "by-one/rows/gpt-layers-3-width-16-heads-2-context-16-text-adam-bcd3-seed2",
        "by-three/rows/gpt-layers-3-width-16-heads-2-context-16-text-adam-bcd3-seed2");
    printed = run(0, "%s --steps 12 --jobs 3 --out by-three", common);
    CHECK(count_of(printed->out, ": done before\n") == 8 && !strstr(printed->out, ": trained"),
          "again: %s", printed->out);
    remove(scratch_path("by-three/validity.h5"));
    run(0, "%s --steps 12 --jobs 3 --out by-three", common);
    CHECK(file_exists(scratch_path("by-three/validity.h5")), "the table of what was there");
    printed = run(75, "%s " ENDLESS "--jobs 3 --out by-three --minutes 0.01", common);
    CHECK(strstr(printed->out, "stopped; "), "%s", printed->out);
}

/* A terminal shows the row, one line of progress that is erased, and the result. */
static void case_on_a_terminal(void) {
    const char *text = program_on_terminal(
        "experiment validity --preset smoke --models resnet:depth=8,width=2 --optimizers sgd "
        "--steps 12 --out shown");
    if (!text) SKIP("no pseudo-terminal here");
    CHECK(strstr(text,
                 "row 1 of 2: resnet-depth-8-width-2-synthetic-sgd-full\r\n"
                 "step 1/12  loss ") &&
              count_of(text, " left\r\033[K  12 steps in ") == 2,
          "printed \"%s\"", text);
}

/* Flags that are for the experiment, or for BCD alone, do not disturb its trainings. */
static void case_flags_of_others(void) {
    scratch_text("flags",
                 "preset smoke\nmodels resnet:depth=8,width=2\noptimizers sgd\nthreads 1\n");
    run(0, "experiment validity --config flags --cache 1M --steps 2 --out flagged");
}

/* Long presets say what they take before they start, here and on rented GPUs. */
static void case_told_before(void) {
    const Printed *printed =
        run(0,
            "experiment validity --preset gpu --models gpt:layers=6,width=32,heads=2,context=16 "
            "--data words.tokens --optimizers adam --seeds 1 --price rtx4090=0.5 --out told");
    CHECK(strstr(printed->out, "2 trainings; ") && strstr(printed->out, "start it with --yes") &&
              !strstr(printed->out, " 0 s\n"),
          "%s", printed->out);
    const char *rented = strstr(printed->out, "on one RTX 4090, simulated: ");
    double hours = 0, dollars = 0;
    CHECK(rented && sscanf(rented, "on one RTX 4090, simulated: %lg hours, %lg dollars at 0.50",
                           &hours, &dollars) == 2,
          "%s", printed->out);
    CHECK(hours > 0 && fabs(dollars - hours / 2) <= 0.006, "%g hours, %g dollars", hours, dollars);
    CHECK(!file_exists(scratch_path("told/rows")), "it has begun");
    Tables tables = {0};
    if (!CHECK(tables_read(&tables, scratch_path("told/validity-gpu-estimate.h5")) == 0, "%s",
               error_message()))
        return;
    const Table *table = tables_find(&tables, "estimate");
    const Cell *cell = table ? table_find(table, "together", "rtx4090_hours") : NULL;
    if (CHECK(cell && table->rows == 3, "not the rows expected")) {
        double sum = 0;
        for (int r = 0; r < 2; r++)
            sum += table_find(table, table->label[r], "rtx4090_hours")->value;
        CHECK(fabs(sum - cell->value) <= 1e-9 * sum, "%g and together %g", sum, cell->value);
        CHECK(fabs(cell->value - hours) <= 0.006 * hours, "%g, printed %g", cell->value, hours);
    }
    tables_free(&tables);
}

/* What has been trained before does not count again. */
static void case_told_what_is_left(void) {
    static const char common[] =
        "experiment validity --preset gpu --models gpt:layers=3,width=16,heads=2,context=16 "
        "--data words.tokens --optimizers adam --steps 3 --out left";
    const Printed *printed = run(0, "%s --seeds 1 --yes", common);
    CHECK(strstr(printed->out, "perplexity"), "tokens have no accuracy: %s", printed->out);
    printed = run(0, "%s --seeds 2", common);
    CHECK(strstr(printed->out, "2 trainings, and 2 done before; ") &&
              !strstr(printed->out, "adam-full  "),
          "%s", printed->out);
}

void test_trainings(void) {
    make_words();
    RUN(case_whole_experiment);
    RUN(case_epochs_and_thin_curves);
    RUN(case_shared_rows);
    RUN(case_at_the_same_time);
    RUN(case_on_a_terminal);
    RUN(case_flags_of_others);
    RUN(case_seeds_have_means);
    RUN(case_told_before);
    RUN(case_told_what_is_left);
}
