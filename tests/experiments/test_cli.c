/* The program from outside: trained, killed, resumed, asked for nonsense. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../experiments/runfile.h"
#include "../data/scratch.h"
#include "program.h"

#define RESNET                                                                            \
    "--model resnet:depth=8,width=2 --data synthetic --limit 32 --batch 4 --submodels 3 " \
    "--switch-every 7 --eval-every 20 --threads 2 "
#define GPT                                                                              \
    "--model gpt:layers=2,width=16,heads=2,context=16 --data text --limit 32 --batch 4 " \
    "--optimizer adam --lr 1e-2 --submodels 2 --switch-every auto --auto-window 3 "      \
    "--auto-min 6 --threads 2 "

static const Printed *run(int status, const char *format, ...) BCD_PRINTF(2, 3);
static const Printed *run(int status, const char *format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    const Printed *printed = program_run(line, 0);
    CHECK(printed->status == status, "bcd %s: status %d, expected %d: %s", line, printed->status,
          status, printed->error);
    return printed;
}

/* One line on stderr, and this one. */
static void check_error(const Printed *printed, const char *expected) {
    size_t length = strlen(printed->error);
    CHECK(length > 0 && strchr(printed->error, '\n') == printed->error + length - 1,
          "not one line: \"%s\"", printed->error);
    CHECK(strstr(printed->error, expected), "says \"%s\", expected \"%s\"", printed->error,
          expected);
}

static char *read_bytes(const char *name, size_t *count) {
    enum { MOST = 1 << 22 };
    FILE *file = fopen(scratch_path(name), "rb");
    char *bytes = malloc(MOST + 1);
    *count = file ? fread(bytes, 1, MOST, file) : 0;
    if (file) fclose(file);
    return bytes;
}

static void write_bytes(const char *name, const char *bytes, size_t count) {
    scratch_file(name, bytes, count);
}

static void check_same_checkpoint(const char *a, const char *b) {
    char name[128];
    size_t a_count, b_count;
    snprintf(name, sizeof name, "%s/checkpoint.h5", a);
    char *x = read_bytes(name, &a_count);
    snprintf(name, sizeof name, "%s/checkpoint.h5", b);
    char *y = read_bytes(name, &b_count);
    CHECK(a_count > 0 && a_count == b_count && memcmp(x, y, a_count) == 0,
          "checkpoints of %s and %s differ", a, b);
    free(x);
    free(y);
}

static bool read_run(RunFile *file, const char *dir) {
    char name[128];
    snprintf(name, sizeof name, "%s/run.h5", dir);
    return CHECK(runfile_read(file, scratch_path(name)) == 0, "%s", error_message());
}

/* No row missing, none twice, the same numbers; only the times differ. */
static void check_same_curves(const char *a, const char *b) {
    RunFile x, y;
    bool ok = read_run(&x, a);
    ok = read_run(&y, b) && ok;
    if (ok &&
        CHECK(x.curve_rows == y.curve_rows && x.evaluation_rows == y.evaluation_rows &&
                  x.switch_rows == y.switch_rows,
              "%zu and %zu steps, %zu and %zu evaluations, %zu and %zu switches", x.curve_rows,
              y.curve_rows, x.evaluation_rows, y.evaluation_rows, x.switch_rows, y.switch_rows)) {
        for (size_t i = 0; i < x.curve_rows; i++)
            CHECK(x.curve[i].step == i + 1 && y.curve[i].step == i + 1 &&
                      x.curve[i].loss == y.curve[i].loss &&
                      x.curve[i].submodel == y.curve[i].submodel &&
                      x.curve[i].samples == y.curve[i].samples &&
                      (i == 0 || y.curve[i].seconds >= y.curve[i - 1].seconds),
                  "row %zu of the curve", i);
        for (size_t i = 0; i < x.evaluation_rows; i++)
            CHECK(x.evaluations[i].step == y.evaluations[i].step &&
                      x.evaluations[i].loss == y.evaluations[i].loss,
                  "evaluation %zu", i);
        for (size_t i = 0; i < x.switch_rows; i++)
            CHECK(x.switches[i].step == y.switches[i].step &&
                      x.switches[i].submodel == y.switches[i].submodel &&
                      x.switches[i].visit == y.switches[i].visit &&
                      strcmp(x.switches[i].reason, y.switches[i].reason) == 0,
                  "switch %zu: step %d, %s, and step %d, %s", i, (int)x.switches[i].step,
                  x.switches[i].reason, (int)y.switches[i].step, y.switches[i].reason);
    }
    runfile_free(&x);
    runfile_free(&y);
}

static void check_same_run(const char *a, const char *b) {
    check_same_checkpoint(a, b);
    check_same_curves(a, b);
}

/* ---- help and wrong use ------------------------------------------------------------------------
 */

static void helps(void) {
    CHECK(strstr(run(0, "--help")->out, "bcd train"), "no commands");
    CHECK(strstr(run(0, "train --help")->out, "--switch-every K|Ee|auto"), "no flags");
    CHECK(strstr(run(0, " ")->out, "usage: bcd COMMAND"), "no usage");
    CHECK(strstr(run(0, "help sample")->out, "--temperature"), "help COMMAND");
    for (int i = 0; i < COMMANDS; i++) {
        const Printed *printed = run(0, "%s --help", command_table[i].name);
        CHECK(strstr(printed->out, command_table[i].name) && !*printed->error, "%s",
              command_table[i].name);
    }
}

static void refuses_wrong_use(void) {
    check_error(run(2, "trian"), "bcd: no command \"trian\"; did you mean bcd train?");
    check_error(run(2, "train --modle x"), "did you mean --model?");
    check_error(run(2, "train --device cuda"), "--device \"cuda\": it takes cpu");
    check_error(run(2, "train --model resnet9x"), "no model \"resnet9x\"");
    check_error(run(2, "train --data cifr"), "no data set \"cifr\"");
    check_error(run(2, "train --model resnet8 --submodels 99"), "99");
    check_error(run(1, "train --data cifar10 --data-dir /nonexistent --out none"), "/nonexistent");
    check_error(run(1, "train --resume nothing"), "nothing: no run in it");
    check_error(run(1, "eval nothing"), "nothing");
    CHECK(!file_exists(scratch_path("none")), "a directory was made for nothing");
}

/* ---- training ----------------------------------------------------------------------------------
 */

static void trains(void) {
    const Printed *printed = run(0, "train " RESNET "--steps 30 --out plain");
    CHECK(strstr(printed->out, "results are in plain") && strstr(printed->out, "bcd report") &&
              strstr(printed->out, "gradients") && !strchr(printed->out, '\r'),
          "printed \"%s\"", printed->out);
    RunFile file;
    if (!read_run(&file, "plain")) return;
    CHECK(strcmp(file.status, "finished") == 0, "status %s", file.status);
    CHECK(file.curve_rows == 30 && file.evaluation_rows == 2 && file.switch_rows == 5,
          "%zu steps, %zu evaluations, %zu switches", file.curve_rows, file.evaluation_rows,
          file.switch_rows);
    CHECK(file.submodels == 3 && file.blocks == 5 && file.samples == 32, "sizes");
    for (int role = 0; role <= MEM_ROLES; role++)
        CHECK(file.memory[role].peak == file.memory[role].planned, "%s: peak %d, planned %d",
              file.memory[role].role, (int)file.memory[role].peak, (int)file.memory[role].planned);
    CHECK(strstr(file.provenance.command, "--out plain") && *file.provenance.commit &&
              file.provenance.threads == 2 && file.provenance.wall > 0,
          "provenance: %s", file.provenance.command);
    runfile_free(&file);
    check_error(run(1, "train " RESNET "--steps 30 --out plain"),
                "plain: holds a run already; go on with bcd train --resume plain");
    check_error(run(1, "train --resume plain --lr 0.5"), "--lr 0.5: this run was started with 0.1");
    check_error(run(1, "train --resume plain --steps 20"), "--steps 20: 30 are done already");
}

static void same_again(void) {
    run(0, "train " RESNET "--steps 30 --out again --quiet");
    check_same_run("plain", "again");
    run(0, "train " RESNET "--steps 30 --out other --seed 2 --quiet");
    size_t a, b;
    char *x = read_bytes("plain/checkpoint.h5", &a), *y = read_bytes("other/checkpoint.h5", &b);
    CHECK(a != b || memcmp(x, y, a) != 0, "another seed gives the same training");
    free(x);
    free(y);
}

static void quiet_and_named_by_itself(void) {
    const Printed *printed = run(0, "train " RESNET "--steps 2 --quiet");
    CHECK(!*printed->out && !*printed->error, "printed \"%s\"", printed->out);
    run(0, "train " RESNET "--steps 2 --quiet");
    CHECK(file_exists(scratch_path("runs/resnet-depth-8-width-2-synthetic-2/run.h5")),
          "no second directory under runs/");
}

static void one_line_on_a_terminal(void) {
    const char *text = program_on_terminal("train " RESNET "--steps 30 --out shown");
    CHECK(strstr(text, "\r\033[K") && strstr(text, "step 30/30  loss "), "printed \"%s\"", text);
    CHECK(strstr(text, "images/s") && strstr(text, " left"), "printed \"%s\"", text);
}

/* ---- interrupted -------------------------------------------------------------------------------
 */

static ino_t inode_of(const char *name) {
    struct stat status;
    return stat(scratch_path(name), &status) == 0 ? status.st_ino : 0;
}

/* Waits until a file has been replaced (or made) so many times, at most twenty seconds. */
static void wait_for_saves(const char *name, ino_t last, int saves) {
    for (int i = 0; i < 20000 && saves; i++) {
        ino_t now = inode_of(name);
        saves -= now != last;
        last = now;
        sleep_ms(1);
    }
}

/* Killed again and again, each time a little later. */
static void killed_and_resumed(const void *row) {
    const char *flags = row;
    char line[1024], start[1024], dir[32], whole[32], checkpoint[64];
    static int number;
    snprintf(dir, sizeof dir, "killed%d", ++number);
    snprintf(whole, sizeof whole, "whole%d", number);
    snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint.h5", dir);
    run(0, "train %s--steps 120 --out %s --quiet", flags, whole);
    snprintf(start, sizeof start, "train %s--steps 120 --save-every 5 --out %s", flags, dir);
    snprintf(line, sizeof line, "train --resume %s", dir);
    int killed = 0;
    for (int times = 0; times < 4; times++) {
        ino_t last = inode_of(checkpoint);
        pid_t process = program_start(times ? line : start);
        wait_for_saves(checkpoint, last, 3);
        if (times == 0) check_error(program_run(line, 0), "another bcd is training in it");
        sleep_ms(3 * times);
        kill(process, SIGKILL);
        killed += program_wait(process) == -SIGKILL;
    }
    CHECK(killed > 0, "never killed before the end");
    run(0, "%s --quiet", line);
    check_same_run(whole, dir);
    test_note("killed %d times", killed);
}

/* Killed between the two renames of a save, the curves are ahead; before the first checkpoint,
 * there are only settings. */
static void curves_ahead_of_the_checkpoint(void) {
    run(0, "train " RESNET "--steps 30 --save-every 3 --keep-last 9 --out ahead --quiet");
    static const char *const kept[] = {"ahead/checkpoint-9.h5", "ahead/checkpoint-14.h5"};
    for (int i = 0; i < 2; i++) {
        size_t count;
        char *bytes = read_bytes(kept[i], &count);
        if (i == 0) write_bytes("ahead/checkpoint.h5", bytes, count);
        if (i == 1) unlink(scratch_path("ahead/checkpoint.h5"));
        free(bytes);
        run(0, "train --resume ahead --quiet");
        check_same_run("plain", "ahead");
    }
}

static void curves_lost(void) {
    unlink(scratch_path("ahead/run.h5"));
    size_t count;
    char *bytes = read_bytes("ahead/checkpoint-9.h5", &count);
    write_bytes("ahead/checkpoint.h5", bytes, count);
    free(bytes);
    run(0, "train --resume ahead --quiet");
    check_same_checkpoint("plain", "ahead");
}

static void stops_on_ctrl_c(void) {
    run(0, "train " GPT "--steps 3000 --eval-every 1000 --out unstopped --quiet");
    for (int i = 0; i < 2; i++) {
        ino_t last = inode_of("stopped/checkpoint.h5");
        pid_t process = program_start(
            i ? "train --resume stopped"
              : "train " GPT "--steps 3000 --eval-every 1000 --save-every 1000 --out stopped");
        wait_for_saves("stopped/checkpoint.h5", last, 1); /* the one at the start */
        sleep_ms(30);
        kill(process, i ? SIGTERM : SIGINT);
        int status = program_wait(process);
        CHECK(status == 128 + (i ? SIGTERM : SIGINT), "status %d", status);
        size_t count;
        char *text = read_bytes("started", &count);
        text[count] = 0;
        CHECK(strstr(text, "; go on with: bcd train --resume stopped\n"), "printed \"%s\"", text);
        free(text);
    }
    RunFile file;
    if (read_run(&file, "stopped"))
        CHECK(file.curve_rows > 0 && file.curve_rows < 3000, "%zu steps", file.curve_rows);
    runfile_free(&file);
    run(0, "train --resume stopped --quiet");
    check_same_run("unstopped", "stopped");
}

static void extends(void) {
    run(0, "train " RESNET "--steps 13 --out longer --quiet");
    run(0, "train --resume longer --steps 30 --threads 1 --quiet");
    check_same_checkpoint("plain", "longer");
    run(0, "train " RESNET "--steps 13 --schedule cosine --out cosine --quiet");
    check_error(run(1, "train --resume cosine --steps 30"), "cosine schedule ends at step 13");
}

static void threads_do_not_matter(void) {
    run(0, "train " GPT "--steps 30 --out two --quiet");
    run(0, "train " GPT "--steps 30 --out three --quiet --recompute --cache 1M --eval-every 7");
    check_same_checkpoint("two", "three");
}

/* ---- trouble -----------------------------------------------------------------------------------
 */

static void loss_not_finite(void) {
    const Printed *printed =
        run(1, "train " RESNET "--steps 30 --lr 1000 --weight-decay 1000 --out wild");
    check_error(printed, "the loss is");
    check_error(printed, "wild/checkpoint.h5 holds the last good state");
    RunFile file;
    if (read_run(&file, "wild"))
        CHECK(strcmp(file.status, "failed") == 0, "status %s", file.status);
    runfile_free(&file);
    run(0, "eval wild");
}

static void disk_full(void) {
    size_t before, after;
    char *old = read_bytes("plain/checkpoint.h5", &before);
    for (size_t room = 3000; room < before; room += before / 4) {
        const Printed *printed = program_run("train --resume plain --steps 40 --quiet", room);
        CHECK(printed->status == 1, "status %d with room for %zu bytes", printed->status, room);
        check_error(printed, "File too large");
    }
    char *now = read_bytes("plain/checkpoint.h5", &after);
    CHECK(before == after && memcmp(old, now, before) == 0, "the old checkpoint changed");
    CHECK(!file_exists(scratch_path("plain/checkpoint.h5.part")), "half a file is left");
    free(old);
    free(now);
}

static void damaged_files(void) {
    run(0, "train " RESNET "--steps 3 --out damaged --quiet");
    size_t count;
    char *bytes = read_bytes("damaged/checkpoint.h5", &count);
    write_bytes("damaged/checkpoint.h5", bytes, count / 2);
    check_error(run(1, "train --resume damaged --steps 6"),
                "damaged/checkpoint.h5: a damaged or truncated HDF5 file");
    check_error(run(1, "eval damaged"), "damaged/checkpoint.h5: a damaged or truncated HDF5 file");
    write_bytes("damaged/checkpoint.h5", bytes, count);
    free(bytes);
    scratch_text("damaged/run.h5", "nonsense");
    check_error(run(1, "train --resume damaged --steps 6"), "damaged/run.h5: not an HDF5 file");
}

/* ---- the other commands ------------------------------------------------------------------------
 */

static void evaluates(void) {
    RunFile file;
    char expected[64];
    if (!read_run(&file, "again")) return;
    const EvaluationRow *last = &file.evaluations[file.evaluation_rows - 1];
    snprintf(expected, sizeof expected, "loss %.4f, accuracy %.2f %%", last->loss,
             100 * last->accuracy);
    CHECK(strstr(run(0, "eval again")->out, expected), "expected %s", expected);
    CHECK(strstr(run(0, "eval again/checkpoint.h5 --split valid --batch 5")->out, expected),
          "expected %s", expected);
    CHECK(strstr(run(0, "eval again --split test --limit 10")->out, "(10 samples)"), "limit");
    runfile_free(&file);
}

static void samples(void) {
    static char first[1 << 16];
    const Printed *printed = run(0, "sample two --prompt int --tokens 40 --seed 3");
    CHECK(strncmp(printed->out, "int", 3) == 0 && strlen(printed->out) >= 43, "\"%s\"",
          printed->out);
    snprintf(first, sizeof first, "%s", printed->out);
    CHECK(strcmp(run(0, "sample two --prompt int --tokens 40 --seed 3")->out, first) == 0,
          "another text from the same seed");
    CHECK(strcmp(run(0, "sample two --prompt int --tokens 40 --seed 4")->out, first) != 0,
          "the same text from another seed");
    snprintf(first, sizeof first, "%s", run(0, "sample two --tokens 20 --temperature 0")->out);
    CHECK(strcmp(run(0, "sample two --tokens 20 --top-k 1 --seed 9")->out, first) == 0,
          "top-k 1 is not the likeliest token");
    check_error(run(1, "sample again"), "reads images");
}

static void informs(void) {
    const Printed *printed = run(0, "info");
    CHECK(strstr(printed->out, "commit") && strstr(printed->out, "G-1.6B           1.6G") &&
              strstr(printed->out, "24.077G") && strstr(printed->out, "12.038G"),
          "%s", printed->out);
    printed = run(0, "info --model resnet14");
    CHECK(strstr(printed->out, "175258 parameters in 8 blocks"), "%s", printed->out);
    check_error(run(2, "info --model resnet14x"), "no model");
}

static void tokenizes(void) {
    char text[40 * 20 + 1] = "";
    for (int i = 0; i < 20; i++) strcat(text, "to be or not to be that is the question\n");
    scratch_text("some.txt", text);
    CHECK(strstr(run(0, "tokenize some.txt --tokenizer bytes")->out, "some.tokens: 800 tokens"),
          "tokens");
    run(0,
        "train --data some.tokens --model gpt:layers=1,width=8,heads=1,context=4 --steps 2 "
        "--out tokens --quiet");
    run(0, "sample tokens --tokens 3");
    check_error(run(1, "tokenize some.txt --tokenizer bytes --out some.bin"),
                "must end in .tokens");
    check_error(run(1, "tokenize absent.txt --tokenizer bytes"), "absent.txt");
}

void test_cli(void) {
    RUN(helps);
    RUN(refuses_wrong_use);
    RUN(trains);
    RUN(same_again);
    RUN(quiet_and_named_by_itself);
    RUN(one_line_on_a_terminal);
    RUN_ROW("killed_and_resumed resnet", killed_and_resumed, RESNET);
    RUN_ROW("killed_and_resumed gpt", killed_and_resumed, GPT);
    RUN(curves_ahead_of_the_checkpoint);
    RUN(curves_lost);
    RUN(stops_on_ctrl_c);
    RUN(extends);
    RUN(threads_do_not_matter);
    RUN(loss_not_finite);
    RUN(disk_full);
    RUN(damaged_files);
    RUN(evaluates);
    RUN(samples);
    RUN(informs);
    RUN(tokenizes);
}
