/* A row is trained in a process of its own: `bcd train` with the row's flags. */
#include <errno.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "../../ref/base/error.h"
#include "../alloc.h"
#include "../store/rundir.h"
#include "../train/interrupt.h"
#include "../train/modules.h"
#include "trainings.h"

enum { ARGUMENTS = 2 * OPTIONS_MAX + 8 };

typedef struct {
    int count;
    char *text[ARGUMENTS];
} Arguments;

static void add(Arguments *a, const char *prefix, const char *text) {
    a->text[a->count++] = xstrdup(text_of("%s%s", prefix, text).text);
}

/* Returns the threads of each training; 0: as OpenMP decides. */
static int row_threads(const TrainingPlan *plan) {
    int threads = plan->asked.options.threads, jobs = plan->asked.experiment.jobs;
    if (threads || jobs == 1) return threads;
    int share = omp_get_max_threads() / jobs;
    return share > 0 ? share : 1;
}

/* Makes the command line of a row; a run that exists already is resumed. */
static int row_arguments(Arguments *a, const TrainingPlan *plan, const TrainingRow *row) {
    Options o = row->options;
    /* The number of threads is always given: a row that goes on would keep what it had.  The
     * progress lines of several trainings would mix. */
    if (options_set_all(&o, "threads=%d", row_threads(plan)) ||
        options_set(&o, o.quiet || plan->asked.experiment.jobs > 1 ? "quiet" : "brief", NULL) ||
        options_set(&o, rundir_holds_run(o.out) ? "resume" : "out", row->options.out))
        return -1;
    add(a, "", "bcd");
    add(a, "", "train");
    for (int i = 0; option_table[i].name; i++) {
        const Option *option = &option_table[i];
        if (!o.given[i] || !(option->commands & COMMAND_TRAIN)) continue;
        add(a, "--", option->name);
        if (option->kind == OPTION_IS_FLAG) continue;
        const Text value = options_format(&o, i);
        add(a, "", *value.text ? value.text : "none"); /* --always-active */
    }
    a->text[a->count] = NULL;
    return 0;
}

/* Lets waiting threads spin for about 0.1 ms before they sleep.  By default they spin for
 * milliseconds, which takes the processor from other trainings.  For the OpenMP libraries of GNU
 * and LLVM, which read this when they are loaded. */
static void limit_spinning(void) {
    if (getenv("OMP_WAIT_POLICY")) return;
    setenv("GOMP_SPINCOUNT", "10000", 0);
    setenv("KMP_BLOCKTIME", "5", 0);
}

/* In the new process: becomes bcd train.  A child of a process that has used OpenMP cannot go on
 * itself, because its threads are missing. */
static _Noreturn void become(const char *program, char **arguments, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* even after kill -9 no training is left behind */
    interrupt_hold();
    limit_spinning();
    if (getppid() == parent) { /* it may have ended already */
        execv(program, arguments);
        execv("/proc/self/exe", arguments); /* where the file has been replaced or removed */
    }
    _exit(127);
}

int trainings_start(const TrainingPlan *plan, TrainingRow *row) {
    char program[OPTION_TEXT];
    Arguments arguments = {0};
    if (program_path(program, sizeof program, "experiment") || row_arguments(&arguments, plan, row))
        return -1;
    fflush(NULL);
    pid_t parent = getpid(), child = fork();
    if (child == 0) become(program, arguments.text, parent);
    int cause = errno;
    for (int i = 0; i < arguments.count; i++) free(arguments.text[i]);
    if (child < 0) return error_set("%s: cannot be started: %s", row->name, strerror(cause));
    row->process = child;
    return 0;
}
