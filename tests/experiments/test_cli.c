/* The program from outside: trained, asked, asked for nonsense. */
#include <math.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"

/* ---- help and wrong use ------------------------------------------------------------------------
 */

static void helps(void) {
    CHECK(strstr(run(0, "--help")->out, "bcd train"), "no commands");
    CHECK(strstr(run(0, "train --help")->out, "--switch-every K|Ee|auto"), "no flags");
    CHECK(strstr(run(0, " ")->out, "usage: bcd COMMAND"), "no usage");
    CHECK(strstr(run(0, "help sample")->out, "--temperature"), "help COMMAND");
    CHECK(strstr(run(0, "help experiment")->out, "\nExperiments\n  validity "), "experiments");
    for (int i = 0; i < COMMANDS; i++) {
        const Printed *printed = run(0, "%s --help", command_table[i].name);
        CHECK(strstr(printed->out, command_table[i].name) && !*printed->error, "%s",
              command_table[i].name);
    }
}

static void refuses_wrong_use(void) {
    check_error(run(2, "trian"), "bcd: no command \"trian\"; did you mean bcd train?");
    check_error(run(2, "train --modle x"), "did you mean --model?");
    check_error(run(2, "train --device gpu"), "--device \"gpu\": it takes cpu, cuda or simt");
    check_error(run(2, "train --model resnet9x"), "no model \"resnet9x\"");
    check_error(run(2, "train --data cifr"), "no data set \"cifr\"");
    check_error(run(2, "train --model resnet8 --submodels 99"), "99");
    check_error(run(1, "train --data cifar10 --data-dir /nonexistent --out none"), "/nonexistent");
    check_error(run(1, "train --data text --model G-20B:context=8 --out none"), "this machine has");
    check_error(run(1, "train --resume nothing"), "nothing: no run in it");
    check_error(run(1, "eval nothing"), "nothing");
    check_error(run(1, "experiment velocity"), "experiment velocity: there is none");
    check_error(run(2, "experiment validity --out none --seeds 0"), "from 1 to 100");
    check_error(run(2, "experiment validity --out none --minutes 0"), "--minutes \"0\"");
    check_error(run(1, "experiment all --preset smoke --out none --multiplier -1"),
                "--multiplier -1: it takes a number above 0");
    CHECK(!file_exists(scratch_path("none")), "a directory was made for nothing");
}

/* What is printed may go to a full disk, too. */
static void says_that_output_is_lost(void) {
    const Printed *printed = program_run("train --help", 4000);
    CHECK(printed->status == 1, "status %d", printed->status);
    check_error(printed, "output could not be written");
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

static void threads_do_not_matter(void) {
    run(0, "train " GPT "--steps 30 --out two --quiet");
    const Printed *printed = run(0, "train " GPT
                                    "--steps 30 --out three --recompute --cache 1M "
                                    "--eval-every 7 --eval-samples 5");
    CHECK(strstr(printed->out, " and 5 validation sequences"), "printed \"%s\"", printed->out);
    check_same_checkpoint("two", "three");
}

/* The numbers behind each switch are those of the curve, and they say what the reason says. */
static void tells_why_it_switched(void) {
    enum { WINDOW = 3 };
    const double tolerance = 0.01;
    RunFile file;
    run(0,
        "train --model resnet:depth=8,width=2 --data synthetic --limit 32 --batch 4 --submodels 3 "
        "--switch-every auto --auto-window 3 --auto-min 6 --auto-max 11 --steps 100 --out auto "
        "--quiet");
    if (!read_run(&file, "auto")) return;
    int stopped = 0, most = 0;
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
        most += !says_stopped;
    }
    CHECK(stopped && most, "%d and %d switches: not both reasons were seen", stopped, most);
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
}

static void one_line_on_a_terminal(void) {
    const char *text = program_on_terminal("train " RESNET "--steps 30 --out shown");
    if (!text) SKIP("no pseudo-terminal here");
    CHECK(strstr(text, "\r\033[K") && strstr(text, "step 30/30  loss "), "printed \"%s\"", text);
    CHECK(strstr(text, "images/s") && strstr(text, " left"), "printed \"%s\"", text);
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
    const Printed *printed = run(0, "sample two --prompt abc --tokens 40 --seed 3");
    CHECK(strncmp(printed->out, "abc", 3) == 0 && strlen(printed->out) >= 43, "\"%s\"",
          printed->out);
    snprintf(first, sizeof first, "%s", printed->out);
    CHECK(strcmp(run(0, "sample two --prompt abc --tokens 40 --seed 3")->out, first) == 0,
          "another text from the same seed");
    CHECK(strcmp(run(0, "sample two --prompt abc --tokens 40 --seed 4")->out, first) != 0,
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

/* What OpenMP says of its settings (and bcd info beside), with this in the environment. */
static const char *settings_of_openmp(const char *environment) {
    static char text[1 << 16];
    char line[1024];
    snprintf(line, sizeof line,
             "env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT -u KMP_BLOCKTIME OMP_DISPLAY_ENV=VERBOSE %s "
             "%s info 2>&1",
             environment, BCD_PROGRAM);
    FILE *out = popen(line, "r");
    size_t count = out ? fread(text, 1, sizeof text - 1, out) : 0;
    text[count] = 0;
    CHECK(out && pclose(out) == 0, "%s: %s", line, text);
    return text;
}

/* GNU's runtime prints the first, LLVM's both. */
static bool sleeps_at_once(const char *settings) {
    return strstr(settings, "GOMP_SPINCOUNT = '0'") || strstr(settings, "KMP_BLOCKTIME='0'");
}
static bool sleeps_soon(const char *settings) {
    return strstr(settings, "GOMP_SPINCOUNT = '3000'") || strstr(settings, "KMP_BLOCKTIME='5'");
}

static void waiting_threads_go_to_sleep(void) {
    enum { MOST = 600 };
    static const char *const users[] = {"OMP_WAIT_POLICY=active", "GOMP_SPINCOUNT=77",
                                        "KMP_BLOCKTIME=77"};
    for (int i = 0; i < 3; i++) {
        const char *settings = settings_of_openmp(users[i]);
        CHECK(!sleeps_at_once(settings) && !sleeps_soon(settings), "%s is not the user's: %s",
              users[i], settings);
    }
    const char *settings = settings_of_openmp("OMP_NUM_THREADS=1");
    CHECK(sleeps_soon(settings), "one thread waits for nobody: %s", settings);
    settings = settings_of_openmp("OMP_NUM_THREADS=2"); /* others may be busy here, or not */
    CHECK(sleeps_soon(settings) || sleeps_at_once(settings), "%s", settings);
    pid_t busy[MOST];
    char all[32];
    int processors = omp_get_num_procs(), count = processors / 2 + 1;
    if (count > MOST) SKIP("%d processors are too many to keep busy", processors);
    snprintf(all, sizeof all, "OMP_NUM_THREADS=%d", processors > 1 ? processors : 2);
    for (int i = 0; i < count; i++)
        if ((busy[i] = fork()) == 0)
            for (;;) continue;
    settings = settings_of_openmp(all);
    CHECK(sleeps_at_once(settings), "on a busy machine: %s", settings);
    for (int i = 0; i < count; i++) {
        kill(busy[i], SIGKILL);
        waitpid(busy[i], NULL, 0);
    }
}

static void tokenizes(void) {
    CHECK(strstr(run(0, "tokenize words.txt --tokenizer bytes --out some.tokens")->out,
                 "some.tokens: 6000 tokens"),
          "tokens");
    run(0,
        "train --data some.tokens --model gpt:layers=1,width=8,heads=1,context=4 --steps 2 "
        "--out tokens --quiet");
    run(0, "sample tokens --tokens 3");
    check_error(run(1, "tokenize words.txt --tokenizer bytes --out some.bin"),
                "must end in .tokens");
    check_error(run(1, "tokenize absent.txt --tokenizer bytes"), "absent.txt");
}

void test_cli(void) {
    make_words();
    RUN(helps);
    RUN(refuses_wrong_use);
    RUN(says_that_output_is_lost);
    RUN(trains);
    RUN(same_again);
    RUN(threads_do_not_matter);
    RUN(tells_why_it_switched);
    RUN(quiet_and_named_by_itself);
    RUN(one_line_on_a_terminal);
    RUN(evaluates);
    RUN(samples);
    RUN(informs);
    RUN(tokenizes);
    RUN(waiting_threads_go_to_sleep);
}
