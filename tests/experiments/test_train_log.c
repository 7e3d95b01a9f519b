/* The logs of a training for other tools, log.csv and --log-samples, also of several sessions. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../experiments/train/train_parts.h"
#include "../../ref/base/error.h"
#include "cli.h"

static void every_update_has_a_row(void) {
    size_t count;
    int rows = 0, evaluations = 0;
    run(0, "train " RESNET "--steps 3 --out logged --quiet --log-samples ids");
    /* The file is as if a session had been killed while it wrote the fifth line. */
    FILE *ids = fopen(scratch_path("ids"), "a");
    if (CHECK(ids, "ids")) fprintf(ids, "4 0 1 2 3\n5 0"), fclose(ids);
    run(0, "train --resume logged --steps 30 --quiet --log-samples ids");
    char *text = read_bytes("logged/log.csv", &count);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        rows += strstr(line, ",,") == line + strlen(line) - 2;
        evaluations += strstr(line, ",,,,") != NULL;
    }
    CHECK(rows == 30 && evaluations == 3, "%d updates, %d evaluations", rows, evaluations);
    free(text);
}

/* A resume writes the rows of earlier sessions again, each at its place. */
static void a_resume_keeps_every_row(void) {
    size_t before, after;
    run(0, "train " RESNET "--steps 25 --out rows --quiet");
    char *first = read_bytes("rows/log.csv", &before);
    run(0, "train --resume rows --quiet");
    char *again = read_bytes("rows/log.csv", &after);
    CHECK(before > 0 && strcmp(first, again) == 0, "\"%s\", then \"%s\"", first, again);
    free(first);
    free(again);
}

static void samples_are_those_of_the_epoch(void) {
    size_t count;
    int rows = 0, step, id[4];
    char *text = read_bytes("ids", &count);
    bool trained[32] = {false};
    for (char *line = strtok(text, "\n"); line && rows < 8; line = strtok(NULL, "\n")) {
        CHECK(sscanf(line, "%d %d %d %d %d", &step, id, id + 1, id + 2, id + 3) == 5 &&
                  step == ++rows,
              "%s", line);
        for (int i = 0; i < 4; i++) trained[id[i] & 31] = true;
    }
    for (int i = 0; i < 32; i++) CHECK(trained[i], "the first epoch leaves out %d", i);
    free(text);
}

/* With --fraction each phase, here of two updates, has half of the samples, in orders of its own.
 */
static void samples_are_those_of_the_phase(void) {
    enum { SAMPLES = 32, BATCH = 4, STEPS = 6, PHASE = 2 };
    Sampler sampler;
    size_t count;
    char want[512] = "";
    int ids[BATCH];
    run(0,
        "train --model resnet:depth=8,width=2 --data synthetic --limit %d --batch %d --steps %d "
        "--fraction 0.5 --submodels 3 --switch-every %d --seed 7 --out part --log-samples part-ids "
        "--quiet",
        SAMPLES, BATCH, STEPS, PHASE);
    if (!CHECK(sampler_init(&sampler, 7, SAMPLES, 0.5) == 0, "%s", error_message())) return;
    for (int step = 0; step < STEPS; step++) {
        sampler_draw(&sampler, (uint64_t)(step / PHASE));
        sampler_ids(&sampler, ids, (uint64_t)step * BATCH, BATCH);
        snprintf(want + strlen(want), sizeof want - strlen(want), "%d %d %d %d %d\n", step + 1,
                 ids[0], ids[1], ids[2], ids[3]);
    }
    sampler_free(&sampler);
    char *text = read_bytes("part-ids", &count);
    CHECK(!strcmp(text, want), "%s, not %s", text, want);
    free(text);
}

/* A log that an earlier session did not write would have a gap, so it is refused; a new log begins
 * at the current step. */
static void a_gap_is_refused(void) {
    size_t count;
    run(0, "train " RESNET "--steps 3 --out gap --quiet --log-samples with-gap");
    run(0, "train --resume gap --steps 5 --quiet");
    check_error(run(1, "train --resume gap --steps 9 --quiet --log-samples with-gap"),
                "--log-samples with-gap: it ends with update 3, and 5 are done; give another name");
    run(0, "train --resume gap --steps 9 --quiet --log-samples without");
    char *text = read_bytes("without", &count);
    CHECK(strncmp(text, "6 ", 2) == 0, "begins with %.9s", text);
    free(text);
}

/* The log of one training is not continued by another: here by one of another seed, and of another
 * batch; nor is that of a phase with other samples. */
static void the_log_of_another_training_stays(void) {
    static const char *const others[] = {"--seed 2", "--batch 2",
                                         "--fraction 0.5 --submodels 3 --switch-every 2"};
    size_t before, after;
    run(0, "train " RESNET "--steps 3 --out mine --quiet --log-samples mine-ids");
    char *log = read_bytes("mine-ids", &before);
    for (int i = 0; i < 3; i++) {
        run(0,
            "train --model resnet:depth=8,width=2 --data synthetic --limit 32 %s %s --steps 3 "
            "--out other%d --quiet",
            i == 1 ? "" : "--batch 4", others[i], i);
        check_error(run(1, "train --resume other%d --steps 4 --quiet --log-samples mine-ids", i),
                    "--log-samples mine-ids: it is of another training; give another name");
        char *now = read_bytes("mine-ids", &after);
        CHECK(before > 0 && !strcmp(log, now), "%s, then %s", log, now);
        free(now);
    }
    free(log);
    /* The phases of what is done are those of run.h5. */
    run(0, "train --resume part --steps 6 --quiet --log-samples part-ids");
    CHECK(unlink(scratch_path("part/run.h5")) == 0, "no run.h5");
    check_error(run(1, "train --resume part --quiet --log-samples part-ids"),
                "run.h5 was lost, and with it which phases had which samples; give another name");
}

/* A new training replaces no file, also no log of an earlier one; one that was killed before its
 * first update is no new training. */
static void other_files_stay(void) {
    size_t count;
    char *before = read_bytes("ids", &count);
    check_error(run(1, "train " RESNET "--steps 2 --out third --quiet --log-samples ids"),
                "--log-samples ids: it is there, and is not empty; give another name");
    char *text = read_bytes("ids", &count);
    CHECK(!strcmp(before, text), "%s", text);
    free(before);
    free(text);
    scratch_text("empty", "");
    run(0, "train " RESNET "--steps 0 --out second --quiet --log-samples empty");
    scratch_text("empty", "1 0 1 2 3\n");
    run(0, "train --resume second --steps 2 --quiet --log-samples empty");
    text = read_bytes("empty", &count);
    CHECK(strncmp(text, "1 ", 2) == 0 && strstr(text, "\n2 ") && !strstr(text, "\n3 "), "%s", text);
    free(text);
    check_error(run(1, "train --resume second --steps 3 --quiet --log-samples second/run.h5"),
                "--log-samples second/run.h5: it is there, and has something else");
    static const struct {
        const char *name, *text;
    } theirs[] = {{"flowers.csv", "5.1,3.5,1.4\n4.9,3.0,1.4\n"},
                  {"days.csv", "2024-01-01,5\n"},
                  {"sizes", "150 4\n5.1 3.5\n"},
                  {"notes", "42\nimportant\n"},
                  {"squares", "1 1\n4 2\n"}};
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++) {
        scratch_text(theirs[i].name, theirs[i].text);
        check_error(
            run(1, "train --resume second --steps 3 --quiet --log-samples %s", theirs[i].name),
            "it is there, and has something else");
        text = read_bytes(theirs[i].name, &count);
        CHECK(!strcmp(text, theirs[i].text), "%s is now \"%s\"", theirs[i].name, text);
        free(text);
    }
    run(0, "train --resume second --steps 3 --quiet");
    CHECK(!file_exists(scratch_path("third")), "a directory is left");
}

/* A directory may have a log.csv of somebody else, or one that is all that is left of a run. */
static void a_log_that_is_there_stays(void) {
    scratch_text("somebody/log.csv", "my,notes\n");
    check_error(run(1, "train " RESNET "--steps 2 --out somebody --quiet"),
                "somebody/log.csv: is there already, and no run.h5; choose another --out");
    run(0, "train " RESNET "--steps 2 --out lost --quiet");
    CHECK(unlink(scratch_path("lost/run.h5")) == 0, "no run.h5");
    CHECK(unlink(scratch_path("lost/checkpoint.h5")) == 0, "no checkpoint.h5");
    check_error(run(1, "train " RESNET "--steps 2 --out lost --quiet"), "is there already");
    /* Killed before its first update, a training has written no more than this. */
    scratch_text("early/log.csv", "step,loss,rate,submodel,validation_loss,accuracy\n0,,,,2,0.1\n");
    run(0, "train " RESNET "--steps 2 --out early --quiet");
}

static void a_pipe_or_device_as_log(void) {
    /* A resumed run cannot append to a pipe, so it writes its own lines only. */
    int reader =
        mkfifo(scratch_path("pipe"), 0600) ? -1 : open(scratch_path("pipe"), O_RDONLY | O_NONBLOCK);
    if (CHECK(reader >= 0, "no pipe"))
        run(0, "train --resume logged --steps 30 --quiet --log-samples pipe"), close(reader);
    if (!file_exists("/dev/full")) SKIP("no /dev/full");
    check_error(run(1, "train " RESNET "--steps 3 --out unlogged --quiet --log-samples /dev/full"),
                "--log-samples /dev/full: cannot write: No space left on device");
}

/* A log that cannot be opened refuses the training; one that cannot be written is said once. */
static void a_log_that_cannot_be_written(void) {
    if (mkdir(scratch_path("odd"), 0700) == 0) mkdir(scratch_path("odd/log.csv"), 0700);
    check_error(run(1, "train " RESNET "--steps 3 --out odd --quiet"), "log.csv: cannot write: ");
    run(0, "train " RESNET "--steps 3 --out full --quiet");
    if (!file_exists("/dev/full")) SKIP("no /dev/full");
    CHECK(unlink(scratch_path("full/log.csv")) == 0 &&
              symlink("/dev/full", scratch_path("full/log.csv")) == 0,
          "no link");
    const char *error = run(0, "train --resume full --steps 6 --quiet")->error;
    const char *said = strstr(error, "bcd: log.csv: cannot write: No space left on device; the ");
    CHECK(said && !strstr(said + 9, "log.csv"), "\"%s\"", error);
}

/* x86 makes a NaN with a sign, and readers of CSV would take "-nan" for text. */
static void a_nan_has_no_sign(void) {
    char text[64] = "";
    Training t = {.log = tmpfile()};
    if (!CHECK(t.log, "no file")) return;
    train_log_curve(&t, &(CurveRow){.step = 3, .loss = -NAN, .lr = 0.5});
    train_log_evaluation(&t, &(EvaluationRow){.step = 3, .loss = -NAN, .accuracy = 0.25});
    rewind(t.log);
    text[fread(text, 1, sizeof text - 1, t.log)] = 0;
    fclose(t.log);
    CHECK(!strcmp(text, "3,nan,0.5,1,,\n3,,,,nan,0.25\n"), "%s", text);
}

/* Without --eval-every it is once an epoch, here of 8 updates, and at the end. */
static void evaluates_once_an_epoch(void) {
    static const uint64_t steps[] = {8, 16, 20};
    RunFile file;
    run(0,
        "train --model resnet:depth=8,width=2 --data synthetic --limit 32 --batch 4 --steps 20 "
        "--out epochs --quiet");
    if (!read_run(&file, "epochs")) return;
    const size_t first = file.evaluation_rows - 3;
    if (CHECK(file.evaluation_rows >= 3, "%zu evaluations", file.evaluation_rows))
        for (size_t i = 0; i < 3; i++)
            CHECK(file.evaluations[first + i].step == steps[i], "evaluation %zu after step %d", i,
                  (int)file.evaluations[first + i].step);
    runfile_free(&file);
}

void test_train_log(void) {
    RUN(every_update_has_a_row);
    RUN(a_resume_keeps_every_row);
    RUN(samples_are_those_of_the_epoch);
    RUN(samples_are_those_of_the_phase);
    RUN(a_gap_is_refused);
    RUN(the_log_of_another_training_stays);
    RUN(other_files_stay);
    RUN(a_log_that_is_there_stays);
    RUN(a_pipe_or_device_as_log);
    RUN(a_log_that_cannot_be_written);
    RUN(a_nan_has_no_sign);
    RUN(evaluates_once_an_epoch);
}
