/* The program as a user runs it: every command, and wrong use. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"

/* ---- help and wrong use -------------------------------------------------------------------- */

static void helps(void) {
    CHECK(strstr(run(0, "--help")->out, "bcd train"), "no commands");
    CHECK(strstr(run(0, "train --help")->out, "--switch-every K|Ee|auto"), "no flags");
    CHECK(strstr(run(0, " ")->out, "usage: bcd COMMAND"), "no usage");
    CHECK(strncmp(run(0, "--version")->out, "bcd ", 4) == 0, "no version");
    CHECK(strstr(run(0, "help sample")->out, "--temperature"), "help COMMAND");
    const char *help = run(0, "help plan")->out;
    const char *own = strstr(help, "\n  --gpu KEY"), *shared = strstr(help, "\n  --context TOKENS");
    CHECK(own && shared && own < shared, "plan's own come first");
    for (int i = 0; i < COMMANDS; i++) {
        const Printed *printed = run(0, "%s --help", command_table[i].name);
        CHECK(strstr(printed->out, command_table[i].name) && !*printed->error, "%s",
              command_table[i].name);
    }
}

/* The help of a flag begins in the next line where the flag itself leaves too little space. */
static void helps_in_79_columns(void) {
    int flags = 0;
    for (int i = 0; i < COMMANDS; i++) {
        const char *line = strstr(run(0, "%s --help", command_table[i].name)->out, "\n  --");
        for (; line; line = strstr(line + 1, "\n  --"), flags++)
            CHECK(strcspn(line + 1, "\n") <= 79, "%.120s", line + 1);
    }
    CHECK(flags > COMMANDS, "only %d lines of flags", flags);
}

/* Tests what bash completes, and the manual page. */
static void helps_when_installed(void) {
    static const char line[] = BCD_SOURCE_DIR "/tests/experiments/check_installed " BCD_PROGRAM;
    CHECK(system(line) == 0, "see above");
}

static void refuses_wrong_use(void) {
    check_error(run(2, "plan --model G-10B --search --budget 0"),
                "--budget \"0\": it takes a number from 0.01 to 1e+09");
    check_error(run(2, "tr\x1b[31m"), "no command \"tr\\x1b[31m\"");
    check_error(run(2, "train --config ."), "--config .: cannot read: Is a directory");
    check_error(run(2, "train --model resnet9x"), "no model \"resnet9x\"");
    check_error(run(2, "train --data cifr"), "no data set \"cifr\"");
    check_error(run(2, "train --model resnet8 --submodels 99"),
                "partition: 99 submodels of 5 blocks; use 1 to 5");
    check_error(run(1, "train --data cifar10 --data-dir /nonexistent --out none"), "/nonexistent");
    check_error(run(1, "train --data text --model " TOO_LARGE " --out none"), "this machine has");
    check_error(run(1, "train --resume nothing"), "nothing: no run in it");
    check_error(run(1, "eval nothing"), "nothing: cannot read: No such file");
    check_error(run(1, "tokenize no.txt --data-dir nowhere"), "tokenize: no.txt: No such file");
    CHECK(symlink("loop", scratch_path("loop")) == 0, "no link");
    check_error(run(1, "train --resume loop"), "loop: cannot look into it: Too many levels");
    check_error(run(2, "train --like loop --out none"), "--like loop: cannot look into it: ");
    char path[601];
    memset(path, 'd', sizeof path - 1);
    path[sizeof path - 1] = 0;
    check_error(run(2, "eval %s", path), "dd...\": longer than 511 characters");
    path[511] = 0;
    check_error(run(1, "eval %s", path), "dd: cannot read: ");
    check_error(run(2, "plan --model G-10B --multiplier -1"), "--multiplier \"-1\"");
    CHECK(!file_exists(scratch_path("none")), "a directory was made for nothing");
}

/* A command takes a run, or a model's directory, and a run has its own context. */
static void refuses_flags_of_the_other_kind(void) {
    static const struct {
        const char *line, *error;
    } rows[] = {
        {"eval a --context 4", "--context goes with --init; a run has the context it was"},
        {"sample a --context 4", "--context goes with --init; a run has the context it was"},
        {"eval", "give a run's directory, or --init DIR with a model"},
        {"sample a --init b", "give a run's directory, or --init DIR with a model"},
        {"eval --init a", "--init: --data says what to evaluate on"},
        {"gradients --checkpoint a --batch b --out c --context 4",
         "--context goes with --init; a checkpoint has its own"},
        {"gradients --checkpoint a --init b --batch c --out d", "bcd gradients needs --checkpoint"},
        {"gradients --checkpoint a --out b", "bcd gradients needs --checkpoint"},
        {"gradients --init a --batch b", "bcd gradients needs --checkpoint"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_error(run(2, "%s", rows[i].line), rows[i].error);
}

/* A full disk behind standard output is an error. */
static void says_that_output_is_lost(void) {
    const Printed *printed = program_run("train --help", 4000);
    CHECK(printed->status == 1, "status %d", printed->status);
    check_error(printed, "output could not be written");
}

/* Without memory for threads OpenMP would print a line of its own in the middle of the output. */
static void says_that_threads_do_not_fit(void) {
    if (TEST_SANITIZED) SKIP("a sanitizer needs more memory than any limit");
    char line[256] = "";
    FILE *out = popen("ulimit -v 300000; OMP_NUM_THREADS=256 " BCD_PROGRAM
                      " info --model resnet8 2>&1 >/dev/null",
                      "r");
    CHECK(out && fgets(line, sizeof line, out), "nothing printed");
    CHECK(strncmp(line, "bcd: cannot start 256 threads: ", 31) == 0 && !fgets(line, 256, out),
          "\"%s\"", line);
    CHECK(out && WEXITSTATUS(pclose(out)) == 1, "its status");
}

/* ---- training ------------------------------------------------------------------------------ */

/* Checks which submodel trains each block of a run with three submodels, stem and head being always
 * active: a convolution and batch norm of width 2, and a linear layer from 8 to 10. */
static void check_partition(const char *path) {
    H5File file;
    int of_block[5];
    uint64_t parameters[3], sum = 0;
    if (!CHECK(h5_open(&file, path) == 0, "%s", error_message())) return;
    CHECK(h5_read(&file, "/partition/of_block", H5_INT, of_block, 1, (size_t[]){5}) == 0 &&
              of_block[0] == -1 && of_block[1] == 0 && of_block[3] == 2 && of_block[4] == -1,
          "%s", error_message());
    CHECK(h5_read(&file, "/partition/parameters", H5_UINT64, parameters, 1, (size_t[]){3}) == 0,
          "%s", error_message());
    for (int m = 0; m < 3; m++) sum += parameters[m];
    uint64_t all = 0;
    CHECK(h5_get(&file, "/model", "parameters", H5_UINT64, &all) == 0 &&
              all - sum == 27 * 2 + 2 * 2 + 8 * 10 + 10,
          "%d of %d", (int)sum, (int)all);
    h5_close(&file);
}

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
    CHECK(file.submodels == 3 && file.samples == 32, "sizes");
    for (int role = 0; role <= MEM_ROLES; role++)
        CHECK(file.memory[role].peak == file.memory[role].planned, "%s: peak %d, planned %d",
              file.memory[role].role, (int)file.memory[role].peak, (int)file.memory[role].planned);
    CHECK(strstr(file.provenance.command, "--out plain") && *file.provenance.commit &&
              file.provenance.threads == 2 && file.provenance.wall > 0,
          "provenance: %s", file.provenance.command);
    runfile_free(&file);
    check_partition(scratch_path("plain/run.h5"));
    check_error(run(1, "train " RESNET "--steps 30 --out plain"),
                "plain: has a run already; continue it with bcd train --resume plain");
    check_error(run(1, "train --resume plain --lr 0.5"), "--lr 0.5: this run was started with 0.1");
    check_error(run(1, "train --resume plain --steps 20"),
                "cannot end at step 20: 30 steps are done already");
    check_error(run(1, "train --resume plain --epochs 1"), "cannot end at step 8: 30 steps");
}

/* Checks that the peak of `bcd train LINE --out DIR` is as planned; or at most that, where the plan
 * is for any submodel. */
static void check_plan(const char *line, const char *dir, bool any) {
    RunFile file;
    run(0, "train %s --out %s --quiet", line, dir);
    if (!read_run(&file, dir)) return;
    for (int role = 0; role <= MEM_ROLES; role++) {
        const MemoryRow *row = &file.memory[role];
        CHECK(row->peak == row->planned || (any && row->peak < row->planned),
              "%s: %s: peak %d, planned %d", line, row->role, (int)row->peak, (int)row->planned);
    }
    runfile_free(&file);
}

/* The planned memory is right even where evaluation needs more scratch memory than any training
 * step, and where the training ends before each submodel has had its turn, in every order.  The
 * last submodel of the ResNet is the largest; its first and last block are active in each, and keep
 * one state. */
static void plans_its_memory(void) {
    static const char *const lines[] = {
        "--model bottleneck:depth=14,width=4,classes=10 --data synthetic --limit 8 --batch 2 "
        "--steps 1",
        RESNET "--steps 8",
        RESNET "--steps 14 --keep-state",
        RESNET "--steps 28 --keep-state",
        RESNET "--steps 7 --order gauss-southwell", /* which activates each to measure it */
        GPT "--steps 6",
        RESNET "--steps 0",
        "--model mlp:inputs=3072,layers=3,width=8,classes=10 --data synthetic --limit 32 "
        "--batch 4 --submodels 3 --switch-every 1 --steps 4",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        check_plan(lines[i], text_of("plan%zu", i).text, false);
    for (Order order = 0; order < ORDER_KINDS; order++)
        check_plan(text_of(RESNET "--steps 7 --order %s", order_names[order]).text,
                   text_of("plan-order%d", (int)order).text, !order_by_phase[order]);
}

/* With --steps 0 a run holds the initial weights, and a resume trains on from them. */
static void trains_zero_steps(void) {
    const Printed *printed = run(0, "train " RESNET "--steps 0 --out nothing");
    CHECK(strstr(printed->out, "nothing trained: validation loss"), "%s", printed->out);
    run(0, "eval nothing");
    run(0, "train --resume nothing --steps 30 --quiet");
    check_same_checkpoint("nothing", "plain");
    RunFile file;
    if (!read_run(&file, "nothing")) return;
    CHECK(strstr(file.provenance.command, "--steps 0"), "started by %s", file.provenance.command);
    runfile_free(&file);
}

static void same_again(void) {
    run(0, "train " RESNET "--steps 30 --out again --quiet");
    check_same_run("plain", "again");
}

/* A seed decides the first samples, and the first values. */
static void another_seed_is_another_training(void) {
    RunFile a, b;
    run(0, "train " RESNET "--steps 30 --out other --seed 2 --quiet");
    const bool read = read_run(&a, "plain");
    if (read_run(&b, "other") && read)
        for (int i = 0; i < 3; i++)
            CHECK(a.curve[i].loss != b.curve[i].loss, "step %d has the same loss", i + 1);
    runfile_free(&a);
    runfile_free(&b);
}

static void threads_do_not_matter(void) {
    run(0, "train " GPT "--steps 30 --out two --quiet");
    const Printed *printed = run(0, "train " GPT_OF_ANY_THREADS
                                    "--steps 30 --out three --threads 3 --recompute --cache 1M "
                                    "--eval-every 7 --eval-samples 5");
    CHECK(strstr(printed->out, " and 5 validation sequences"), "printed \"%s\"", printed->out);
    check_same_checkpoint("two", "three");
}

/* The losses stored with a switch are those of the curve, and they agree with the reason stored.
 * */
static void stores_why_it_switched(void) {
    enum { WINDOW = 3 };
    const double tolerance = 0.01;
    RunFile file;
    run(0,
        "train --model resnet:depth=8,width=2 --data synthetic --limit 32 --batch 4 --submodels 3 "
        "--switch-every auto --auto-window 3 --auto-min 6 --auto-max 11 --steps 100 --out auto "
        "--quiet");
    if (!read_run(&file, "auto")) return;
    int stopped = 0, longest = 0;
    for (size_t i = 0; i < file.switch_rows; i++) {
        const SwitchRow *now = &file.switches[i];
        if (i == 0) {
            CHECK(isnan(now->window_loss) && isnan(now->earlier_loss), "numbers at the start");
            continue;
        }
        size_t length = now->step - now[-1].step, end = now->step - length % WINDOW;
        double window = runfile_smooth(&file, end - 1, WINDOW),
               earlier = runfile_smooth(&file, end - 1 - WINDOW, WINDOW);
        CHECK(now->window_loss == window && now->earlier_loss == earlier,
              "step %d: %.17g after %.17g, by the curve %.17g after %.17g", (int)now->step,
              now->window_loss, now->earlier_loss, window, earlier);
        bool fell = window < earlier * (1 - tolerance);
        bool says_stopped = strstr(now->reason, "the loss stopped falling");
        CHECK(says_stopped ? !fell : length == 11 && strstr(now->reason, "the most allowed"),
              "step %d: %s", (int)now->step, now->reason);
        stopped += says_stopped;
        longest += !says_stopped;
    }
    CHECK(stopped && longest, "%d and %d switches: not both reasons occur", stopped, longest);
    runfile_free(&file);
    if (!read_run(&file, "plain")) return;
    CHECK(isnan(file.switches[1].window_loss) && strstr(file.switches[1].reason, "after 7 steps"),
          "%s", file.switches[1].reason);
    runfile_free(&file);
}

static void quiet_and_named_by_itself(void) {
    const Printed *printed = run(0, "train " RESNET "--steps 2 --quiet");
    CHECK(!*printed->out && !*printed->error, "printed \"%s\"", printed->out);
    run(0, "train " RESNET "--steps 2 --quiet");
    CHECK(file_exists(scratch_path("runs/resnet-depth-8-width-2-synthetic-2/run.h5")),
          "no second directory under runs/");
    run(0, "export two --out pretrained --quiet");
    run(0, "train --init pretrained --data words.tokens --steps 0 --quiet");
    CHECK(file_exists(scratch_path("runs/gpt-layers-2-width-16-heads-2-context-16-vocabulary-256-"
                                   "words.tokens-1/run.h5")),
          "not named after the model in --init");
}

/* ---- the other commands -------------------------------------------------------------------- */

static void evaluates(void) {
    RunFile file;
    char expected[96];
    if (!read_run(&file, "again")) return;
    const EvaluationRow *last = &file.evaluations[file.evaluation_rows - 1];
    snprintf(expected, sizeof expected, "loss %.4f, accuracy %.2f %%", last->loss,
             100 * last->accuracy);
    CHECK(strstr(run(0, "eval again")->out, expected), "expected %s", expected);
    CHECK(strstr(run(0, "eval again/checkpoint.h5 --split valid --batch 5")->out, expected),
          "expected %s", expected);
    CHECK(strstr(run(0, "eval again --split test --limit 10")->out, "(10 samples)"), "limit");
    /* Of which nothing is known, so that no other samples are missed. */
    CHECK(strstr(run(0, "eval again --split test")->out, "test split of"), "the test split");
    runfile_free(&file);
    /* A resume that trains nothing, but asks for other samples. */
    run(0, "train --resume again --eval-samples 3 --quiet");
    if (!read_run(&file, "again")) return;
    last = &file.evaluations[file.evaluation_rows - 1];
    snprintf(expected, sizeof expected, "loss %.4f, accuracy %.2f %%", last->loss,
             100 * last->accuracy);
    CHECK(strstr(run(0, "eval again")->out, expected), "expected %s", expected);
    CHECK(last->step == 30 && last[-1].step < 30, "evaluated twice");
    runfile_free(&file);
    /* The samples of the training, or all that are asked for. */
    run(0, "train " RESNET "--steps 1 --eval-samples 3 --out few --quiet");
    CHECK(strstr(run(0, "eval few")->out, "(3 samples)"), "of the training");
    CHECK(strstr(run(0, "eval few/checkpoint.h5")->out, "(3 samples)"), "as its directory");
    CHECK(strstr(run(0, "eval few --limit 10")->out, "(10 samples)"), "limit");
}

/* A training that crops and flips its images is evaluated on the images as they are. */
static void evaluates_without_augmentation(void) {
    Text loss[2];
    for (int augment = 0; augment < 2; augment++) {
        run(0, "train " RESNET "--steps 0 %s --out plain-%d --quiet", augment ? "--augment" : "",
            augment);
        const char *found = strstr(run(0, "eval plain-%d --split train", augment)->out, "): loss");
        loss[augment] = text_of("%s", found ? found : "none");
    }
    CHECK(!strcmp(loss[0].text, loss[1].text), "%s and %s", loss[0].text, loss[1].text);
}

static void tokenizes(void) {
    CHECK(strstr(run(0, "tokenize words.txt --tokenizer bytes --out s.tokens")->out,
                 "s.tokens: 6000 tokens"),
          "tokens");
    run(0,
        "train --data s.tokens --model gpt:layers=1,width=8,heads=1,context=4 --steps 2 "
        "--out tokens --quiet");
    run(0, "sample tokens --tokens 3");
    check_error(run(1, "tokenize words.txt --tokenizer bytes --out some.bin"),
                "must end in .tokens");
    check_error(run(1, "tokenize absent.txt --tokenizer bytes"), "absent.txt");
    check_error(run(1, "tokenize words.txt --tokenizer absent --out a.tokens"),
                "--tokenizer \"absent\": there is no such directory; it takes bytes, gpt2, or the");
    scratch_text("wiki.v1/wiki.train.txt", "abc");
    CHECK(strstr(run(0, "tokenize wiki.v1/wiki.train.txt --tokenizer bytes")->out,
                 "wiki.v1/wiki.train.tokens: 3 tokens"),
          "its name");
    /* part.00 and part.01 would both become part.tokens. */
    check_error(run(1, "tokenize wiki.v1/wiki.train.txt --tokenizer bytes"),
                "wiki.v1/wiki.train.tokens: is there already; to replace it, give --out "
                "wiki.v1/wiki.train.tokens");
    run(0, "tokenize words.txt --tokenizer bytes --out wiki.v1/wiki.train.tokens");
    scratch_text("two.jsonl", "{\"text\": \"ok\"}\n{\"text\": \"b\"}\n");
    CHECK(
        strstr(
            run(0, "tokenize two.jsonl --tokenizer bytes")->out,
            "two.tokens: 3 tokens (bytes) of 3 bytes in 2 documents, with nothing between them\n"),
        "what is between documents");
    check_error(run(1, "tokenize s.tokens --tokenizer bytes"),
                "--out s.tokens: it is one of the inputs");
    scratch_text("flags", "--batch 2\n");
    run(0, "train " GPT "--steps 0 --out unlearned --quiet");
    run(0, "export unlearned --out directory --quiet");
    static const char *const lines[] = {"info --init directory --out directory/config.json",
                                        "trace --model resnet8 --config flags --out flags",
                                        "trace --data s.tokens --batch 2 --out s.tokens"};
    for (int i = 0; i < 3; i++)
        check_error(run(2, "%s", lines[i]), "it is one of the inputs; give another name");
    run(0, "info --init directory --out directory/info.h5");
    run(0, "info --init directory --out directory/info.h5");
}

void test_cli(void) {
    make_words();
    RUN(helps);
    RUN(helps_in_79_columns);
    RUN(helps_when_installed);
    RUN(refuses_wrong_use);
    RUN(refuses_flags_of_the_other_kind);
    RUN(says_that_output_is_lost);
    RUN(says_that_threads_do_not_fit);
    RUN(trains);
    RUN(plans_its_memory);
    RUN(trains_zero_steps);
    RUN(same_again);
    RUN(another_seed_is_another_training);
    RUN(threads_do_not_matter);
    RUN(stores_why_it_switched);
    RUN(quiet_and_named_by_itself);
    RUN(evaluates);
    RUN(evaluates_without_augmentation);
    RUN(tokenizes);
}
