/* Trainings that are killed, stopped, out of disk space, or that find their files damaged. */
#include <hdf5.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../data/file.h"
#include "../../experiments/train/train_parts.h"
#include "../../ref/base/error.h"
#include "cli.h"
#include "compare.h"

/* A fine-tuning, whose weights are in the checkpoint from the first save on. */
#define TUNED                                                                                      \
    "--init " BCD_SOURCE_DIR                                                                       \
    "/tests/fixtures/pretrained/grouped --data words.tokens --context 8 "                          \
    "--limit 32 --batch 4 --lr 1e-3 --schedule constant --submodels 3 --switch-every 4 --threads " \
    "2 "

/* ---- interrupted --------------------------------------------------------------------------- */

/* A training that is killed several times, each time a little later, ends like one that was not
 * killed. */
static void killed_and_resumed(const void *row) {
    const char *flags = row;
    char line[1024], start[1024], dir[32], whole[32], checkpoint[64];
    static int number;
    snprintf(dir, sizeof dir, "killed%d", ++number);
    snprintf(whole, sizeof whole, "whole%d", number);
    snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint.h5", dir);
    snprintf(start, sizeof start, "train %s" ENDLESS "--save-every 5 --out %s", flags, dir);
    snprintf(line, sizeof line, "train --resume %s", dir);
    for (int times = 0; times < 4; times++) {
        ino_t last = inode_of(checkpoint);
        pid_t process = program_start(times ? line : start);
        wait_for_saves(process, checkpoint, last, 3);
        if (times == 0) check_error(program_run(line, 0), "another bcd is training in it");
        sleep_ms(3 * times);
        kill(process, SIGKILL);
        CHECK(program_wait(process) == -SIGKILL, "it ended before it was killed");
    }
    int steps = steps_beyond(dir);
    run(0, "%s --steps %d --quiet", line, steps);
    run(0, "train %s--steps %d --out %s --quiet", flags, steps, whole);
    check_same_run(whole, dir);
    test_note("%d steps", steps);
}

/* A training that is killed between the two renames of a save has curves ahead of its checkpoint,
 * here by more than the switch after step 14. */
static void curves_ahead_of_the_checkpoint(void) {
    run(0, "train " RESNET "--steps 30 --save-every 7 --keep-last 9 --out ahead --quiet");
    unlink(scratch_path("ahead/checkpoint.h5"));
    copy_file("ahead/checkpoint.h5", "ahead/checkpoint-14.h5");
    run(0, "train --resume ahead --quiet");
    check_same_run("uncut", "ahead");
}

/* A run of an older commit (8ab79642), after five steps of eight, whose losses that commit printed.
 */
static void resumes_an_older_run(void) {
    static const double losses[] = {2.33397096, 2.24718767, 2.34081465};
    RunFile file;
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "older/run.h5" : "older/checkpoint.h5";
        size_t bytes;
        const Text from = text_of(BCD_SOURCE_DIR "/tests/fixtures/%s", name);
        unsigned char *content = file_read("fixture", from.text, "it is committed", &bytes);
        if (!CHECK(content, "%s", error_message())) return;
        scratch_file(name, (char *)content, bytes);
        free(content);
    }
    run(0, "train --resume older --steps 8 --quiet");
    if (!read_run(&file, "older")) return;
    for (size_t i = 0; i < 3 && CHECK(file.curve_rows == 8, "%zu rows", file.curve_rows); i++)
        CHECK(fabs(file.curve[5 + i].loss - losses[i]) <= 1e-5 * losses[i], "step %zu: %.9g", 6 + i,
              file.curve[5 + i].loss);
    runfile_free(&file);
}

/* A training that is killed before its first checkpoint has only settings, and begins again.  One
 * that has trained needs its checkpoint. */
static void checkpoint_missing(void) {
    run(0, "train " RESNET "--steps 0 --out bald --quiet");
    unlink(scratch_path("bald/checkpoint.h5"));
    unlink(scratch_path("bald/log.csv"));
    run(0, "train --resume bald --steps 30 --quiet");
    check_same_checkpoint("uncut", "bald");
    unlink(scratch_path("bald/checkpoint.h5"));
    check_error(run(1, "train --resume bald --quiet"),
                "bald: checkpoint.h5 is missing, and run.h5 has 30 updates; put it back, or start "
                "again with bcd train --like bald");
    run(0, "train --like bald --quiet --out like");
    check_same_checkpoint("uncut", "like");
}

static void curves_lost(void) {
    unlink(scratch_path("ahead/run.h5"));
    copy_file("ahead/checkpoint.h5", "ahead/checkpoint-14.h5");
    size_t before, after;
    char *log = read_bytes("ahead/log.csv", &before);
    CHECK(
        strstr(run(0, "train --resume ahead --brief")->out, "run.h5 is missing: the curves begin"),
        "no word");
    check_same_checkpoint("uncut", "ahead");
    char *kept = read_bytes("ahead/log-until-14.csv", &after);
    CHECK(before == after && memcmp(log, kept, before) == 0, "the log before is another");
    free(log);
    free(kept);
}

/* The log that was kept is not replaced by one of a resume that came to nothing. */
static void kept_logs_stay(void) {
    size_t count;
    run(0, "train " GPT "--steps 6 --out nameless --quiet");
    unlink(scratch_path("nameless/run.h5"));
    scratch_text("nameless/log-until-6.csv", "all of it");
    /* The checkpoint has the name of the data. */
    CHECK(strstr(run(0, "eval nameless")->out, "valid split of words.tokens"), "other data");
    run(0, "train --resume nameless --steps 9 --quiet");
    char *kept = read_bytes("nameless/log-until-6.csv", &count);
    CHECK(!strcmp(kept, "all of it"), "replaced by \"%s\"", kept);
    free(kept);
    run(0, "train " GPT "--steps 9 --out named --quiet");
    check_same_checkpoint("named", "nameless");
}

/* Where checkpoint.h5 is a symbolic link, what is kept is the file. */
static void keeps_files_and_no_links(void) {
    struct stat status;
    char link[512];
    run(0, "train " RESNET "--steps 2 --save-every 2 --keep-last 3 --out linked --quiet");
    snprintf(link, sizeof link, "%s", scratch_path("linked/checkpoint.h5"));
    CHECK(!rename(link, scratch_path("elsewhere.h5")) && !symlink("../elsewhere.h5", link),
          "setup");
    run(0, "train --resume linked --steps 4 --quiet");
    ino_t file[2];
    for (int i = 0; i < 2; i++) {
        const char *kept = scratch_path(text_of("linked/checkpoint-%d.h5", 2 + 2 * i).text);
        CHECK(lstat(kept, &status) == 0 && S_ISREG(status.st_mode), "%s", kept);
        file[i] = status.st_ino;
    }
    CHECK(file[0] != file[1], "both are the same");
    run(0, "train " RESNET "--steps 4 --out unlinked --quiet");
    check_same_checkpoint("unlinked", "linked");
    CHECK(mkdir(scratch_path("linked/checkpoint-6.h5"), 0700) == 0, "setup");
    check_error(run(1, "train --resume linked --steps 6 --quiet"), "; go on with --keep-last 0");
    run(0, "train --resume linked --steps 6 --keep-last 0 --quiet");
}

/* Without --save-every, a training of less than a minute saves at its start and its end only. */
static void saves_seldom(void) {
    enum { STEPS = 300 };
    RunFile file;
    int count = 0;
    run(0,
        "train --model resnet:depth=8,width=2 --data synthetic --limit 32 --batch 4 --threads 2 "
        "--steps %d --eval-every %d --keep-last 99 --out seldom --quiet",
        STEPS, STEPS);
    for (int step = 0; step <= STEPS; step++) {
        char name[64];
        snprintf(name, sizeof name, "seldom/checkpoint-%d.h5", step);
        count += file_exists(scratch_path(name));
    }
    if (read_run(&file, "seldom"))
        CHECK(count >= 2 && count <= 2 + file.provenance.wall / 60, "%d checkpoints in %g s", count,
              file.provenance.wall);
    runfile_free(&file);
}

/* A longer training saves once a minute, or once in twenty times what a save takes. */
static void saves_once_a_minute(void) {
    static const struct {
        double ago, cost;
        bool due;
    } rows[] = {{61, 0, true}, {50, 0, false}, {61, 10, false}, {150, 10, false}, {201, 10, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Training t = {.saved = clock_seconds() - rows[i].ago, .save_cost = rows[i].cost};
        CHECK(train_save_due(&t) == rows[i].due, "%g s after a save of %g s", rows[i].ago,
              rows[i].cost);
    }
}

/* The curve has the time of the updates alone, here without four evaluations of 250 batches each;
 * the run's time has all of it, of every session. */
static void times_of_updates_and_of_sessions(void) {
    RunFile first, second;
    run(0,
        "train --model resnet:depth=8,width=2 --data synthetic --batch 4 --threads 2 --steps 4 "
        "--eval-every 1 --eval-samples 1000 --out timed --quiet");
    if (read_run(&first, "timed") &&
        CHECK(first.curve_rows == 4 && first.evaluation_rows == 4, "rows")) {
        CHECK(first.curve[3].seconds < first.provenance.wall / 4, "updates %g s, in all %g s",
              first.curve[3].seconds, first.provenance.wall);
        run(0, "train --resume timed --eval-samples 1 --steps 5 --quiet");
        if (read_run(&second, "timed"))
            CHECK(second.provenance.wall > first.provenance.wall, "%g s, then %g s in all",
                  first.provenance.wall, second.provenance.wall);
        runfile_free(&second);
    }
    runfile_free(&first);
}

/* The extension runs with the number of threads that the training had last. */
static void extends(void) {
    RunFile file;
    run(0, "train " RESNET "--steps 13 --out longer --quiet");
    run(0, "train --resume longer --steps 30 --threads 1 --quiet");
    check_same_checkpoint("uncut", "longer");
    run(0, "train --resume longer --quiet");
    if (read_run(&file, "longer"))
        CHECK(file.provenance.threads == 1, "%d threads", file.provenance.threads);
    runfile_free(&file);
    run(0, "train " RESNET "--steps 13 --schedule cosine --out cosine --quiet");
    check_error(run(1, "train --resume cosine --steps 30"), "cosine schedule ends at step 13");
    run(0, "train " RESNET "--epochs 1 --schedule cosine --out epochs --quiet");
    check_error(run(1, "train --resume epochs --epochs 3"), "cosine schedule ends at step 8");
    check_error(run(1, "train --resume epochs --steps 9"), "cosine schedule ends at step 8");
}

/* ---- trouble ------------------------------------------------------------------------------- */

/* The error names the update that is to blame: the last of the curve, or the next one if that had
 * no loss. */
static void check_step(const Printed *printed, const RunFile *file) {
    const bool undone = strstr(printed->error, ": the loss is");
    check_error(printed, text_of("bcd: step %zu: ", file->curve_rows + undone).text);
}

static void loss_not_finite(void) {
    const Printed *printed =
        run(1, "train " RESNET "--steps 30 --lr 1000 --weight-decay 1000 --out wild");
    check_error(printed, "the loss is");
    check_error(printed, "wild/checkpoint.h5 holds the last finite state");
    RunFile file;
    if (read_run(&file, "wild"))
        CHECK(strcmp(file.status, "diverged") == 0, "status %s", file.status);
    check_step(printed, &file);
    runfile_free(&file);
    run(0, "eval wild");
}

/* An update can leave numbers that are not finite although the loss before it was finite.  They
 * are not saved, and the training has failed, even if that was its last step. */
static void weights_not_finite(void) {
    for (int steps = 1; steps <= 4; steps++) {
        const Printed *printed =
            run(1, "train " RESNET "--steps %d --lr 1000 --weight-decay 1000 --out burst%d --quiet",
                steps, steps);
        check_error(printed, "/checkpoint.h5 holds the last finite state");
        RunFile file;
        if (read_run(&file, text_of("burst%d", steps).text))
            CHECK(strcmp(file.status, "diverged") == 0, "status %s", file.status);
        check_step(printed, &file);
        runfile_free(&file);
        printed = run(0, "eval burst%d", steps);
        CHECK(!strstr(printed->out, "nan") && !strstr(printed->out, "inf"), "%s", printed->out);
    }
    const Printed *saved =
        run(1, "train " RESNET
               "--steps 9 --lr 1000 --weight-decay 1000 --save-every 1 --out burst --quiet");
    RunFile file;
    check_error(saved,
                "has a number that is NaN or infinite; burst/checkpoint.h5 holds the last finite");
    if (read_run(&file, "burst")) check_step(saved, &file);
    runfile_free(&file);
}

static void disk_full(void) {
    size_t before, after;
    char *old = read_bytes("uncut/checkpoint.h5", &before);
    for (size_t room = 3000; room < before; room += before / 4) {
        const Printed *printed = program_run("train --resume uncut --steps 40 --quiet", room);
        CHECK(printed->status == 1, "status %d with room for %zu bytes", printed->status, room);
        check_error(printed, "File too large");
    }
    char *now = read_bytes("uncut/checkpoint.h5", &after);
    CHECK(before == after && memcmp(old, now, before) == 0, "the old checkpoint changed");
    CHECK(!file_exists(scratch_path("uncut/checkpoint.h5.tmp")), "half a file is left");
    free(old);
    free(now);
}

/* The first update cannot keep its prefix, in a directory whose name holds "nan". */
static void cache_without_space(void) {
    scratch_text("nancy/empty", "");
    check_error(program_run("train --model resnet:depth=8,width=2 --data synthetic --limit 64 "
                            "--batch 64 --submodels 3 --order descending --cache 1 --steps 2 "
                            "--threads 2 --quiet --out nancy/run",
                            50000),
                "step 1: cache: cannot write to nancy/run: File too large");
}

static void damaged_files(void) {
    run(0, "train " RESNET "--steps 3 --out damaged --quiet");
    size_t count;
    char *bytes = read_bytes("damaged/checkpoint.h5", &count);
    scratch_file("damaged/checkpoint.h5", bytes, count / 2);
    check_error(run(1, "train --resume damaged --steps 6"),
                "damaged/checkpoint.h5: a damaged or truncated HDF5 file");
    check_error(run(1, "eval damaged"), "damaged/checkpoint.h5: a damaged or truncated HDF5 file");
    scratch_file("damaged/checkpoint.h5", bytes, count);
    free(bytes);
    scratch_text("damaged/run.h5", "nonsense");
    check_error(run(1, "train --resume damaged --steps 6"),
                "damaged/run.h5: not an HDF5 file; if you remove that file, the run can continue");
}

static void delete_tensor(const char *name, const char *tensor) {
    hid_t file = H5Fopen(scratch_path(name), H5F_ACC_RDWR, H5P_DEFAULT);
    CHECK(H5Ldelete(file, tensor, H5P_DEFAULT) >= 0, "no %s", tensor);
    H5Fclose(file);
}

/* A checkpoint that lacks running statistics is refused: the network would be another. */
static void missing_statistics(void) {
    static const char tensor[] = "/buffers/stem.norm.running_mean";
    run(0, "train " RESNET "--steps 3 --out bare --quiet");
    delete_tensor("bare/checkpoint.h5", tensor);
    check_error(run(1, "train --resume bare --steps 6"), tensor);
    check_error(run(1, "eval bare"), tensor);
}

/* So is one that lacks optimizer state of a parameter that trains, on one device and on ranks: the
 * training would go on with zeros.  An evaluation reads no state. */
static void missing_state(void) {
    static const char tensor[] = "/optimizer/first/stem.conv.weight";
    run(0, "train " RESNET "--steps 3 --out stateless --quiet");
    delete_tensor("stateless/checkpoint.h5", tensor);
    check_error(run(1, "train --resume stateless --steps 6"), tensor);
    run(0, "eval stateless");
    run(0, "train " RESNET "--steps 3 --pipeline local:2 --out stateless2 --quiet");
    delete_tensor("stateless2/checkpoint.h5", tensor);
    check_error(run(1, "train --resume stateless2 --steps 6"), tensor);
}

/* run.h5 and checkpoint.h5 of different runs are refused. */
static void changed_settings(void) {
    static const char *const files[] = {"changed/run.h5", "changed/checkpoint.h5"};
    static const char *const errors[] = {"run.h5 says --batch 8, checkpoint.h5 4",
                                         "run.h5 says --batch 4, checkpoint.h5 8"};
    run(0, "train " RESNET "--steps 3 --out changed --quiet");
    for (int i = 0; i < 2; i++) {
        change_batch(files[i], 8);
        check_error(run(1, "train --resume changed --steps 6"), errors[i]);
        change_batch(files[i], 4);
    }
    run(0,
        "train --model resnet:depth=8,width=2 --limit 32 --batch 8 --steps 3 --out wide --quiet");
    copy_file("changed/checkpoint.h5", "wide/checkpoint.h5");
    check_error(run(1, "train --resume changed --steps 6"), "checkpoint.h5 ");
}

/* Only regular files are replaced; of a symbolic link, the file that it points to. */
static void writes_to_files_alone(void) {
    char link[512];
    struct stat status, before;
    snprintf(link, sizeof link, "%s", scratch_path("link.h5"));
    CHECK(mkfifo(scratch_path("pipe.h5"), 0600) == 0 && symlink("linked.h5", link) == 0, "setup");
    run(0, "info --model resnet8 --out linked.h5");
    CHECK(stat(link, &before) == 0, "setup");
    run(0, "plan --model G-1.6B --gpu a100 --out link.h5");
    CHECK(lstat(link, &status) == 0 && S_ISLNK(status.st_mode), "the link is gone");
    CHECK(stat(link, &status) == 0 && status.st_ino != before.st_ino, "what it names is as it was");
    check_error(run(1, "plan --model G-1.6B --gpu a100 --out pipe.h5"),
                "pipe.h5: not a regular file, and only those are replaced");
    CHECK(stat(scratch_path("pipe.h5"), &status) == 0 && S_ISFIFO(status.st_mode), "the pipe");
}

void test_interrupted(void) {
    make_words();
    run(0, "train " RESNET "--steps 30 --out uncut --quiet");
    RUN_ROW("killed_and_resumed resnet", killed_and_resumed, RESNET);
    RUN_ROW("killed_and_resumed gpt", killed_and_resumed, GPT);
    RUN_ROW("killed_and_resumed tuned", killed_and_resumed, TUNED);
    RUN(resumes_an_older_run);
    RUN(curves_ahead_of_the_checkpoint);
    RUN(checkpoint_missing);
    RUN(curves_lost);
    RUN(kept_logs_stay);
    RUN(keeps_files_and_no_links);
    RUN(saves_seldom);
    RUN(saves_once_a_minute);
    RUN(times_of_updates_and_of_sessions);
    RUN(extends);
    RUN(loss_not_finite);
    RUN(weights_not_finite);
    RUN(disk_full);
    RUN(cache_without_space);
    RUN(damaged_files);
    RUN(missing_statistics);
    RUN(missing_state);
    RUN(changed_settings);
    RUN(writes_to_files_alone);
}
