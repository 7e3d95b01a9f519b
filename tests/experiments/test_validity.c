/* `bcd experiment validity` and `bcd trace`, through the program as it is used. */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../experiments/study.h"
#include "../../experiments/validity.h"
#include "../../ref/error.h"
#include "../test.h"

static void scratch_dir(char dir[200], const char *name) {
    const char *base = getenv("TMPDIR");
    snprintf(dir, 200, "%s/bcd-validity-%ld-%s", base ? base : "/tmp", (long)getpid(), name);
}

/* Runs a shell command, with what it prints in *text (to be freed); its exit status. */
static int run(char **text, const char *format, ...) BCD_PRINTF(2, 3);
static int run(char **text, const char *format, ...) {
    enum { MOST = 1 << 20 };
    char command[2048];
    va_list arguments;
    va_start(arguments, format);
    int used = vsnprintf(command, sizeof command - 8, format, arguments);
    va_end(arguments);
    snprintf(command + used, 8, " 2>&1");
    FILE *out = popen(command, "r");
    *text = calloc(1, MOST);
    if (!out || !*text) return -1;
    size_t length = fread(*text, 1, MOST - 1, out);
    (*text)[length] = 0;
    int status = pclose(out);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void remove_dir(const char *dir) {
    char *text;
    run(&text, "rm -rf '%s'", dir);
    free(text);
}

/* ---- the plan -------------------------------------------------------------------------------- */

static int plan_of(Plan *plan, int argc, char **argv) {
    Options options;
    if (options_parse(&options, argc, argv)) return -1;
    return plan_make(plan, &options);
}

static void case_plan(void) {
    char *argv[] = {"bcd",          "experiment",  "validity", "--preset", "smoke",
                    "--optimizers", "adamw",       "--steps",  "7",        "--out",
                    "somewhere/x",  "--submodels", "2",        NULL};
    Plan plan;
    if (!CHECK(plan_of(&plan, 13, argv) == 0, "%s", error_message())) return;
    CHECK(plan.rows == 4, "%d rows", plan.rows);
    for (int r = 0; r < plan.rows; r++) {
        const Options *o = &plan.row[r].options;
        CHECK(o->steps == 7 && o->optimizer == OPTIMIZER_ADAMW, "row %d: the flags given", r);
        CHECK(o->submodels == (r % 2 ? 2 : 1), "row %d: %d submodels", r, o->submodels);
        CHECK(strstr(o->out, "somewhere/x/rows/") && strstr(o->out, plan.row[r].name), "%s",
              o->out);
        for (int other = 0; other < r; other++)
            CHECK(strcmp(plan.row[r].name, plan.row[other].name), "two rows %s", plan.row[r].name);
    }
    plan_free(&plan);
}

/* The rows of Table 2 that can be run, as long as they were published: 16 of images, 4 of text. */
static void case_plan_paper(void) {
    char *argv[] = {"bcd", "experiment", "validity", "--preset", "paper", NULL};
    Plan plan;
    if (!CHECK(plan_of(&plan, 5, argv) == 0, "%s", error_message())) return;
    CHECK(plan.rows == 20 && plan.long_run, "%d rows", plan.rows);
    CHECK(plan.row[1].options.epochs == 395 && plan.row[1].options.submodels == 3, "%s: %g epochs",
          plan.row[1].name, plan.row[1].options.epochs);
    CHECK(plan.row[19].options.epochs == 50 && plan.row[19].options.batch == 1, "%s: %g epochs",
          plan.row[19].name, plan.row[19].options.epochs);
    plan_free(&plan);
}

static void case_plan_mistakes(void) {
    static char *const wrong[][2] = {{"--preset", "huge"},      {"--models", "resnet9"},
                                     {"--optimizers", "lbfgs"}, {"--submodels", "1"},
                                     {"--submodels", "60"},     {"--models", "gpt:layers=2"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char *argv[] = {"bcd", "experiment", "validity", wrong[i][0], wrong[i][1], NULL};
        Plan plan;
        CHECK(plan_of(&plan, 5, argv) == -1 && *error_message(), "%s %s", wrong[i][0], wrong[i][1]);
        plan_free(&plan);
    }
}

/* ---- a whole experiment ---------------------------------------------------------------------- */

#define SMALL                                                                             \
    "--preset smoke --models gpt:layers=2,width=16,heads=2,context=16 --optimizers adam " \
    "--threads 1 --save-every 20 --steps 120 "

static int read_table(Study *study, const char *dir) {
    char path[256];
    snprintf(path, sizeof path, "%s/validity.h5", dir);
    return study_read(study, path);
}

static void case_whole_experiment(void) {
    char dir[200], *text;
    Study study = {0};
    scratch_dir(dir, "whole");
    int status = run(&text,
                     BCD_PROGRAM
                     " experiment validity --preset smoke --threads 1 --steps 12 "
                     "--out '%s'",
                     dir);
    CHECK(status == 0, "exit status %d: %s", status, text);
    CHECK(strstr(text, "row 1 of 8") && strstr(text, "row 8 of 8"), "%s", text);
    free(text);
    if (CHECK(read_table(&study, dir) == 0, "%s", error_message())) {
        CHECK(study.rows == 8, "%d rows", study.rows);
        for (int r = 0; r < study.rows; r++) {
            const StudyRow *row = &study.row[r];
            CHECK(row->steps == 12 && row->curve_rows == 12, "%s: %d steps", row->name,
                  (int)row->steps);
            CHECK(isfinite(row->train_loss) && isfinite(row->valid_loss) && row->multiplier > 0,
                  "%s: loss %g, B-F %g", row->name, row->train_loss, row->multiplier);
            CHECK(row->peak[MEM_PARAMETERS] == 4.0 * (double)row->parameters, "%s: peak",
                  row->name);
            CHECK(row->seconds > 0 && row->rate > 0 && *row->commit && *row->command, "%s",
                  row->name);
            bool full = row->submodels == 1;
            CHECK(strcmp(row->method, full ? "full" : "BCD") == 0, "%s", row->method);
            /* Less memory for gradients and state is the point of it all. */
            if (!full)
                CHECK(row->peak[MEM_STATE] < study.row[r - 1].peak[MEM_STATE], "%s: state",
                      row->name);
        }
    }
    study_free(&study);
    status = run(&text, BCD_PROGRAM " report '%s/validity.h5'", dir);
    CHECK(status == 0 && strstr(text, "BCD-1/3") && strstr(text, "report.html"), "report: %s",
          text);
    free(text);
    remove_dir(dir);
}

/* Starts the program, kills it as soon as a file is there, and says whether it was still running.
 */
static bool kill_when_there(const char *dir, const char *file) {
    char path[400], out[220];
    snprintf(path, sizeof path, "%s/rows/%s", dir, file);
    snprintf(out, sizeof out, "--out=%s", dir);
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        execl(BCD_PROGRAM, "bcd", "experiment", "validity", "--preset", "smoke", "--models",
              "gpt:layers=2,width=16,heads=2,context=16", "--optimizers", "adam", "--threads", "1",
              "--save-every", "20", "--steps", "120", out, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    for (int i = 0; i < 12000 && access(path, F_OK); i++) {
        if (waitpid(child, &status, WNOHANG)) return false;
        nanosleep(&(struct timespec){.tv_nsec = 5 * 1000 * 1000}, NULL);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return WIFSIGNALED(status);
}

/* Killed within the second row, and begun again: the same numbers as if nothing had happened. */
static void case_killed_and_resumed(void) {
    char whole[200], killed[200], *text;
    Study a = {0}, b = {0};
    scratch_dir(whole, "plain");
    scratch_dir(killed, "killed");
    CHECK(run(&text, BCD_PROGRAM " experiment validity " SMALL "--out '%s'", whole) == 0, "%s",
          text);
    free(text);
    bool was_running = kill_when_there(
        killed, "gpt-layers-2-width-16-heads-2-context-16-text-adam-bcd3/checkpoint.h5");
    CHECK(was_running, "it ended before it could be killed");
    CHECK(read_table(&b, killed) == 0 && b.rows == 1, "the finished row is in the table: %s",
          error_message());
    study_free(&b);
    CHECK(run(&text, BCD_PROGRAM " experiment validity " SMALL "--out '%s'", killed) == 0, "%s",
          text);
    CHECK(strstr(text, "row 1 of 2") && strstr(text, "done before"), "%s", text);
    free(text);
    CHECK(read_table(&a, whole) == 0 && read_table(&b, killed) == 0, "%s", error_message());
    CHECK(a.rows == 2 && b.rows == 2, "%d and %d rows", a.rows, b.rows);
    for (int r = 0; r < a.rows && r < b.rows; r++) {
        const StudyRow *x = &a.row[r], *y = &b.row[r];
        CHECK(x->curve_rows == 120 && y->curve_rows == 120, "%s: %zu and %zu steps", x->name,
              x->curve_rows, y->curve_rows);
        for (size_t s = 0; s < x->curve_rows && s < y->curve_rows; s++)
            if (!CHECK(x->curve[s].loss == y->curve[s].loss &&
                           x->curve[s].submodel == y->curve[s].submodel,
                       "%s: step %zu", x->name, s + 1))
                break;
        CHECK(x->valid_loss == y->valid_loss && x->multiplier == y->multiplier, "%s: %g, %g",
              x->name, y->valid_loss, y->multiplier);
    }
    study_free(&a);
    study_free(&b);
    remove_dir(whole);
    remove_dir(killed);
}

/* A row that is there with other settings is not passed off as this one. */
static void case_other_settings(void) {
    char dir[200], *text;
    scratch_dir(dir, "other");
    run(&text, BCD_PROGRAM " experiment validity " SMALL "--out '%s'", dir);
    free(text);
    int status = run(&text, BCD_PROGRAM " experiment validity " SMALL "--lr 0.5 --out '%s'", dir);
    CHECK(status == 1 && strstr(text, "--lr 0.5") && strstr(text, dir), "%d: %s", status, text);
    free(text);
    remove_dir(dir);
}

/* ---- trace ----------------------------------------------------------------------------------- */

static void case_trace(void) {
    char *text;
    int status = run(&text, BCD_PROGRAM
                     " trace --model resnet:depth=8,width=4 --limit 32 --batch 8 "
                     "--threads 1");
    CHECK(status == 0, "%d: %s", status, text);
    static const char *const expected[] = {
        "stem",   "block1", "block2",     "block3",      "head",   "active",
        "frozen", "prefix", "submodel 3", "full update", "weight", "mean, most memory"};
    for (size_t e = 0; e < sizeof expected / sizeof *expected; e++)
        CHECK(strstr(text, expected[e]), "\"%s\" is missing in\n%s", expected[e], text);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        CHECK(strlen(line) <= 100, "%zu columns: %s", strlen(line), line);
    free(text);
    status = run(&text, BCD_PROGRAM " trace --model resnet8 --limit 32 --batch 8 --active 4");
    CHECK(status == 1 && strstr(text, "--active 4"), "%d: %s", status, text);
    free(text);
}

void test_validity(void) {
    RUN(case_plan);
    RUN(case_plan_paper);
    RUN(case_plan_mistakes);
    RUN(case_whole_experiment);
    RUN(case_killed_and_resumed);
    RUN(case_other_settings);
    RUN(case_trace);
}
