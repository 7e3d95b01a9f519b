/* Experiments that are stopped or killed, fail, or find rows there already. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "../../experiments/study/study.h"
#include "../../ref/base/error.h"
#include "../data/scratch.h"
#include "cli.h"
#include "report_sample.h"

static int read_table(Study *study, const char *dir) {
    char name[64];
    snprintf(name, sizeof name, "%s/validity.h5", dir);
    return study_read(study, scratch_path(name));
}

/* A parent that ignores the end of its children hands that down. */
static void case_ignored_children(void) {
    if (TEST_SANITIZED) SKIP("jobs are watched where they are left alone");
    signal(SIGCHLD, SIG_IGN);
    pid_t process = program_start(
        "experiment validity --preset smoke --models resnet:depth=8,width=2 --optimizers sgd "
        "--steps 2 --jobs 2 --out ignored");
    signal(SIGCHLD, SIG_DFL);
    for (int i = 0; i < 600 && program_runs(process); i++) sleep_ms(100);
    if (!CHECK(!program_runs(process), "it waits in vain")) kill(process, SIGKILL);
    CHECK(program_wait(process) == 0, "it failed");
    /* Beyond --jobs a training does not go on with the few threads that it had there. */
    RunFile file;
    run(0,
        "experiment validity --preset smoke --models resnet:depth=8,width=2 --optimizers sgd "
        "--steps 3 --quiet --out ignored");
    if (read_run(&file, "ignored/rows/resnet-depth-8-width-2-synthetic-sgd-full"))
        CHECK(file.settings.threads == 0, "%d threads", file.settings.threads);
    runfile_free(&file);
}

static void case_in_pieces(void) {
    static const char common[] =
        "experiment validity --preset smoke --models gpt:layers=3,width=16,heads=2,context=16 "
        "--optimizers adam --threads 1 " ENDLESS "--out pieces";
    const Printed *printed = run(75, "%s --minutes 0.01", common);
    CHECK(strstr(printed->out, "stopped; the same command continues"), "%s", printed->out);
    CHECK(file_exists(scratch_path("pieces/rows/gpt-layers-3-width-16-heads-2-context-16-text-"
                                   "adam-full/checkpoint.h5")),
          "no checkpoint");
}

/* One model, one optimizer, data of its own: two rows. */
#define TWO_ROWS_OF(steps)                                                                  \
    "experiment validity --preset smoke --models gpt:layers=2,width=16,heads=2,context=16 " \
    "--data words.tokens --optimizers adam --threads 1 --save-every 20 --steps " steps " --out "
#define TWO_ROWS TWO_ROWS_OF("120")
#define ROW "gpt-layers-2-width-16-heads-2-context-16-words.tokens-adam-"

/* Starts the program and kills it as soon as a file is there.  False: it ended before. */
static bool kill_when_there(const char *line, const char *name) {
    pid_t process = program_start(line);
    while (program_runs(process) && !file_exists(scratch_path(name))) sleep_ms(1);
    kill(process, SIGKILL);
    return program_wait(process) == -SIGKILL;
}

/* Returns the training that an experiment runs, or 0. */
static pid_t training_of(pid_t experiment) {
    char path[64];
    int child = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)experiment, (int)experiment);
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%d", &child) != 1) child = 0;
    if (file) fclose(file);
    return child;
}

/* A signal to all processes of a group, as a batch system sends it, does not end a training before
 * it has saved. */
static void case_all_are_told(void) {
    static const char row[] = "group/rows/gpt-layers-3-width-16-heads-2-context-16-text-adam-full";
    char checkpoint[128];
    RunFile file;
    snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint.h5", row);
    pid_t process = program_start(
        "experiment validity --preset smoke --models gpt:layers=3,width=16,heads=2,context=16 "
        "--optimizers adam --save-every 1000000000 --eval-every 1000000000 " ENDLESS "--out group");
    wait_for_saves(process, checkpoint, 0, 1);
    pid_t training = training_of(process);
    if (training) kill(training, SIGTERM);
    kill(process, SIGTERM);
    CHECK(program_wait(process) == 128 + SIGTERM, "its status");
    CHECK(file_exists(scratch_path("group/validity.h5")), "no table");
    if (read_run(&file, row)) CHECK(file.curve_rows > 0, "it was not saved");
    runfile_free(&file);
    if (!training) SKIP("this system does not list the children of a process");
}

/* However an experiment ends, its trainings end as well. */
static void case_none_left_behind(void) {
    static const char row[] = "behind/rows/gpt-layers-3-width-16-heads-2-context-16-text-adam-full";
    char checkpoint[128];
    bool free_again = false;
    snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint.h5", row);
    bool killed = kill_when_there(
        "experiment validity --preset smoke --models "
        "gpt:layers=3,width=16,heads=2,context=16 --optimizers adam " ENDLESS
        "--eval-every 1000000000 --jobs 2 --out behind",
        checkpoint);
    CHECK(killed, "it ended before it was killed");
    /* Whoever trains holds the directory's lock; a refusal for another reason says it is free,
     * at whatever step the training was ended. */
    for (int i = 0; i < 12000 && !free_again; i++, sleep_ms(50))
        free_again = strstr(run(1, "train --resume %s --lr 0.5", row)->error, "--lr 0.5");
    CHECK(free_again, "a training goes on without the experiment");
}

static void check_same_row(const StudyRow *x, const StudyRow *y) {
    CHECK(x->curve_rows == 120 && y->curve_rows == 120, "%s: %zu and %zu steps", x->name,
          x->curve_rows, y->curve_rows);
    for (size_t s = 0; s < x->curve_rows && s < y->curve_rows; s++)
        if (!CHECK(x->curve[s].loss == y->curve[s].loss &&
                       x->curve[s].submodel == y->curve[s].submodel,
                   "%s: step %zu", x->name, s + 1))
            break;
    CHECK(x->valid_loss == y->valid_loss && x->multiplier == y->multiplier, "%s: %g, %g", x->name,
          y->valid_loss, y->multiplier);
}

/* Killed within the second row, and begun again: the same numbers as if nothing had happened.  The
 * row may end first, where this process gets no time; then it is tried again. */
static void case_killed_and_resumed(void) {
    Study a = {0}, b = {0};
    char dir[32], line[400], checkpoint[128];
    bool killed = false;
    run(0, TWO_ROWS "plain");
    for (int again = 0; again < 100 && !killed; again++) {
        snprintf(dir, sizeof dir, "killed%d", again);
        snprintf(line, sizeof line, TWO_ROWS "%s", dir);
        snprintf(checkpoint, sizeof checkpoint, "%s/rows/" ROW "bcd3/checkpoint.h5", dir);
        killed = kill_when_there(line, checkpoint);
    }
    CHECK(killed, "it always ended before it was killed");
    CHECK(read_table(&b, dir) == 0 && b.rows == 1, "the finished row is in the table: %s",
          error_message());
    study_free(&b);
    const Printed *printed = run(0, "%s", line);
    CHECK(strstr(printed->out, "row 1 of 2") && strstr(printed->out, "done before"), "%s",
          printed->out);
    CHECK(read_table(&a, "plain") == 0 && read_table(&b, dir) == 0, "%s", error_message());
    CHECK(a.rows == 2 && b.rows == 2, "%d and %d rows", a.rows, b.rows);
    for (int r = 0; r < a.rows && r < b.rows; r++) check_same_row(&a.row[r], &b.row[r]);
    study_free(&a);
    study_free(&b);
}

/* A row that is there with other settings is not passed off as this one; another M is a new row. */
static void case_rows_already_there(void) {
    Study study = {0};
    check_error(run(1, TWO_ROWS "plain --lr 0.5"), "--lr 0.5");
    check_error(run(1, TWO_ROWS "plain --device plain"),
                "trained with --device cpu; for plain choose another --out");
    run(0, TWO_ROWS "plain --submodels 2");
    CHECK(read_table(&study, "plain") == 0 && study.rows == 3, "%d rows", study.rows);
    study_free(&study);
}

/* A table that came without its trainings' directories: its rows count as trained, and stay.  Only
 * what is asked to be longer is trained anew. */
static void case_table_alone(void) {
    Study before = {0}, after = {0};
    run(0, TWO_ROWS "alone");
    CHECK(read_table(&before, "alone") == 0 && before.rows == 2, "%s", error_message());
    for (int r = 0; r < 2; r++) {
        char name[160];
        snprintf(name, sizeof name, "alone/rows/" ROW "%s/run.h5", r ? "bcd3" : "full");
        remove(scratch_path(name));
        snprintf(name, sizeof name, "alone/rows/" ROW "%s/checkpoint.h5", r ? "bcd3" : "full");
        remove(scratch_path(name));
    }
    const Printed *printed = run(0, TWO_ROWS "alone --jobs 2");
    CHECK(strstr(printed->out, "full: done before") && strstr(printed->out, "bcd3: done before"),
          "%s", printed->out);
    CHECK(!file_exists(scratch_path("alone/rows/" ROW "full/run.h5")) &&
              !file_exists(scratch_path("alone/rows/" ROW "bcd3/run.h5")),
          "trained again");
    check_error(run(1, TWO_ROWS "alone --lr 0.5"), "--lr 0.5");
    run(0, TWO_ROWS "alone --submodels 2");
    CHECK(read_table(&after, "alone") == 0 && after.rows == 3, "%d rows", after.rows);
    if (before.rows == 2 && after.rows == 3) check_same_row(&before.row[0], &after.row[0]);
    if (before.rows == 2 && after.rows == 3) check_same_row(&before.row[1], &after.row[2]);
    study_free(&after);
    run(0, TWO_ROWS_OF("130") "alone");
    CHECK(read_table(&after, "alone") == 0 && after.rows == 3 && after.row[0].steps == 130,
          "%d rows", after.rows);
    study_free(&before);
    study_free(&after);
}

/* A row that fails says so in one line, and the others go on. */
static void case_diverged(void) {
    for (int jobs = 1; jobs <= 2; jobs++) {
        Study study = {0};
        const Printed *printed =
            run(1, TWO_ROWS "wild%d --lr 1000 --optimizer sgd --jobs %d", jobs, jobs);
        CHECK(strstr(printed->out, "full: failed") && strstr(printed->out, "bcd3: failed"), "%s",
              printed->out);
        CHECK(count_of(printed->error, "\n") == 3 &&
                  strstr(printed->error, "full/checkpoint.h5 holds the last good state\n") &&
                  strstr(printed->error, "bcd3/checkpoint.h5 holds the last good state\n") &&
                  strstr(printed->error, "\nbcd: 2 of 2 rows failed and are not in the table\n"),
              "%s", printed->error);
        CHECK(read_table(&study, jobs == 1 ? "wild1" : "wild2") == 0, "the table is there: %s",
              error_message());
        study_free(&study);
    }
}

void test_trainings_resumed(void) {
    make_words();
    RUN(case_in_pieces);
    RUN(case_ignored_children);
    RUN(case_all_are_told);
    RUN(case_none_left_behind);
    RUN(case_killed_and_resumed);
    RUN(case_rows_already_there);
    RUN(case_table_alone);
    RUN(case_diverged);
}
