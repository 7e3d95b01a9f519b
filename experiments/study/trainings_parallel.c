/* Trains several rows of a plan at the same time, each in a process of its own: `bcd train` with
 * the row's flags.  The plan then finds them finished. */
#include <errno.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../ref/error.h"
#include "../store/rundir.h"
#include "../train/interrupt.h"
#include "../train/modules.h"
#include "../train/progress.h"
#include "trainings.h"

enum { ARGUMENTS = 2 * OPTIONS_MAX + 8 };

typedef struct {
    TrainingPlan *plan;
    int running, ended, todo;
    bool stopping; /* the trainings have been told */
    double started;
} TrainingPool;

typedef struct {
    int count;
    char *text[ARGUMENTS];
} Arguments;

static void add(Arguments *a, const char *prefix, const char *text) {
    char whole[OPTION_TEXT + 64];
    snprintf(whole, sizeof whole, "%s%s", prefix, text);
    a->text[a->count] = strdup(whole);
    a->count += a->text[a->count] != NULL;
}

/* Makes the command line of a row; a run that exists already is resumed. */
static void row_arguments(Arguments *a, const TrainingRow *row, const char *threads) {
    static const char *const excluded[] = {"out", "quiet", "threads"};
    char value[OPTION_TEXT];
    const Options *o = &row->options;
    bool old = rundir_holds_run(o->out);
    add(a, "", "bcd");
    add(a, "", "train");
    for (int i = 0; option_table[i].name; i++) {
        const Option *option = &option_table[i];
        bool skip = !o->given[i] || !(option->commands & COMMAND_TRAIN);
        for (size_t k = 0; k < sizeof excluded / sizeof *excluded; k++)
            skip = skip || strcmp(option->name, excluded[k]) == 0;
        if (skip) continue;
        add(a, "--", option->name);
        if (option->kind == OPTION_IS_FLAG) continue;
        options_format(o, i, value);
        add(a, "", *value ? value : "none"); /* --always-active */
    }
    add(a, "", "--quiet");
    add(a, "", "--threads");
    add(a, "", threads);
    add(a, "--", old ? "resume" : "out");
    add(a, "", o->out);
    a->text[a->count] = NULL;
}

/* Lets waiting threads spin for about 0.1 ms before they sleep.  By default they spin for
 * milliseconds, which takes the processor from the other trainings.  For the OpenMP libraries of
 * GNU and LLVM, which read this when they are loaded. */
static void limit_spinning(void) {
    if (getenv("OMP_WAIT_POLICY")) return;
    setenv("GOMP_SPINCOUNT", "10000", 0);
    setenv("KMP_BLOCKTIME", "5", 0);
}

static int start(TrainingPool *pool, TrainingRow *row, int threads) {
    char program[OPTION_TEXT], number[16];
    Arguments arguments = {0};
    snprintf(number, sizeof number, "%d", threads);
    if (program_path(program, sizeof program, "--jobs")) return -1;
    row_arguments(&arguments, row, number);
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM); /* the training stops when this process ends */
        limit_spinning();
        if (getppid() == parent) execv(program, arguments.text); /* it may have ended already */
        _exit(127);
    }
    int cause = errno;
    for (int i = 0; i < arguments.count; i++) free(arguments.text[i]);
    if (child < 0) return error_set("--jobs: a training cannot be started: %s", strerror(cause));
    row->process = child;
    pool->running++;
    return 0;
}

static void print_end(const TrainingPool *pool, const TrainingRow *row, bool failed) {
    char left[32];
    double each = (clock_seconds() - pool->started) / pool->ended;
    if (row->options.quiet) return;
    printf("%d of %d %s: %s (about %s left)\n", pool->ended, pool->ended + pool->todo,
           failed ? "failed" : "trained", row->name, format_time(each * pool->todo, left));
    fflush(stdout);
}

/* Waits until a process has ended.  One that fails prints why, and the plan finds it failed. */
static void wait_for_one(TrainingPool *pool) {
    static const struct timespec moment = {0, 20000000};
    TrainingRow *first = pool->plan->row, *end = first + pool->plan->rows;
    for (int before = pool->ended; pool->ended == before; nanosleep(&moment, NULL)) {
        bool tell = interrupt_signal() && !pool->stopping;
        pool->stopping |= tell;
        int status = 0;
        for (TrainingRow *row = first; row < end; row++) {
            if (!row->process) continue;
            if (tell) kill(row->process, SIGTERM);
            if (waitpid(row->process, &status, WNOHANG) <= 0) continue;
            row->process = 0;
            pool->running--;
            pool->ended++;
            pool->todo--;
            if (!interrupt_signal()) print_end(pool, row, status != 0);
        }
    }
}

int trainings_run_parallel(TrainingPlan *plan) {
    TrainingPool pool = {.plan = plan, .started = clock_seconds()};
    int failed = 0, threads = plan->threads ? plan->threads : omp_get_max_threads() / plan->jobs;
    for (int r = 0; r < plan->rows; r++) pool.todo += !plan->row[r].finished;
    for (int r = 0; r < plan->rows && !failed && !interrupt_signal(); r++) {
        if (plan->row[r].finished) continue;
        if (pool.running == plan->jobs) wait_for_one(&pool);
        if (!interrupt_signal()) failed = start(&pool, &plan->row[r], threads > 0 ? threads : 1);
    }
    while (pool.running) wait_for_one(&pool);
    return failed;
}
