/* Directories of runs: who trains in one, which of the kept checkpoints stay, and what is beside a
 * checkpoint. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../experiments/store/rundir.h"
#include "cli.h"

/* The lock is of a regular file: on NFS one of a directory holds for a single machine. */
static void one_process_a_directory(void) {
    const char *dir = scratch_path("locked");
    struct stat status;
    CHECK(rundir_make(dir) == 0, "%s", error_message());
    int first = rundir_lock(dir);
    CHECK(first >= 0, "%s", error_message());
    CHECK(fstat(first, &status) == 0 && S_ISREG(status.st_mode), "not of a regular file");
    CHECK(rundir_lock(dir) < 0, "locked twice");
    CHECK_ERROR("%s: another bcd is training in it; wait for it, or use another --out", dir);
    close(first);
    int again = rundir_lock(dir);
    CHECK(again >= 0, "%s", error_message());
    rundir_give_up(dir, false);
    CHECK(rmdir(dir) == 0 && mkdir(dir, 0777) == 0, "a directory is not as it was before");
    rundir_give_up(dir, true);
    close(again);
    CHECK(!file_exists(dir), "a directory without a run is left");
}

/* The second training starts in the directory of the first, which was longer. */
static void keeps_the_last(void) {
    static const char *const contents[] = {"first", "another"};
    static const int expected[2][4] = {{0, 0, 1, 1}, {0, 1, 1, 1}};
    char dir[OPTION_TEXT];
    size_t count;
    snprintf(dir, sizeof dir, "%s", scratch_path("keeping"));
    CHECK(rundir_make(dir) == 0, "%s", error_message());
    for (int training = 0; training < 2; training++) {
        for (int step = 5; step <= 20 - 5 * training; step += 5) {
            remove(scratch_path("keeping/checkpoint.h5"));
            scratch_text("keeping/checkpoint.h5", contents[training]);
            CHECK(rundir_keep(dir, (uint64_t)step, 2) == 0, "%s", error_message());
        }
        for (int i = 0; i < 4; i++) {
            const Text path = text_of("%s/checkpoint-%d.h5", dir, 5 * (i + 1));
            CHECK(file_exists(path.text) == expected[training][i], "%d: %s", training, path.text);
        }
    }
    free(read_bytes("keeping/checkpoint-15.h5", &count));
    CHECK(count == strlen("another"), "checkpoint-15.h5 is of the first training");
}

/* A user's copies, of which --keep-last knows nothing, stay. */
static void keeps_what_is_no_checkpoint_of_its_own(void) {
    static const char *const names[] = {"copies/checkpoint-1.h5.bak", "copies/checkpoint-1.txt",
                                        "copies/checkpoint-best.h5", "copies/my-checkpoint-1.h5",
                                        "copies/checkpoint-1.h5~"};
    char dir[OPTION_TEXT];
    snprintf(dir, sizeof dir, "%s", scratch_path("copies"));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) scratch_text(names[i], "");
    for (int step = 2; step <= 4; step++) {
        scratch_text("copies/checkpoint.h5", "");
        CHECK(rundir_keep(dir, (uint64_t)step, 1) == 0, "%s", error_message());
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK(file_exists(scratch_path(names[i])), "%s is gone", names[i]);
    CHECK(!file_exists(scratch_path("copies/checkpoint-3.h5")) &&
              file_exists(scratch_path("copies/checkpoint-4.h5")),
          "its own");
}

/* The settings of a checkpoint's run are beside it, also where its name has no directory. */
static void finds_the_run_of_a_checkpoint(void) {
    static const struct {
        const char *place, *run;
    } rows[] = {{"kept.h5", "run.h5"},
                {"runs/a/checkpoint.h5", "runs/a/run.h5"},
                {"./checkpoint-7.h5", "./run.h5"},
                {"/checkpoint.h5", "/run.h5"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK(!strcmp(rundir_run(rows[i].place).text, rows[i].run), "%s: %s", rows[i].place,
              rundir_run(rows[i].place).text);
    scratch_text("found/checkpoint.h5", "");
    const Text dir = text_of("%s", scratch_path("found"));
    CHECK(!strcmp(rundir_run(dir.text).text, rundir_path(dir.text, "run.h5").text), "%s",
          rundir_run(dir.text).text);
}

void test_rundir(void) {
    RUN(one_process_a_directory);
    RUN(keeps_the_last);
    RUN(keeps_what_is_no_checkpoint_of_its_own);
    RUN(finds_the_run_of_a_checkpoint);
}
