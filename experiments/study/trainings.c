#include "trainings.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../ref/base/clock.h"
#include "../../ref/base/error.h"
#include "../store/rundir.h"
#include "../store/settings.h"
#include "../train/interrupt.h"
#include "../train/setup.h"
#include "converge.h"
#include "measures.h"

/* Compares the settings of a training with those that a row asks for.  Returns 1 when they are the
 * same; 0 when the row asks for a longer training; -1 with an error set that names `place`
 * otherwise. */
static int same_settings(const Options *had, const TrainingRow *row, const char *place) {
    Options now = *had;
    int same = 1;
    if (settings_resume(&now, &row->options)) return error_set("%s: %s", place, error_message());
    for (int o = 0; option_table[o].name; o++) {
        const Option *option = &option_table[o];
        if (!row->options.given[o]) continue;
        const Text before = options_format(had, o), wanted = options_format(&row->options, o);
        if (strcmp(before.text, wanted.text) == 0) continue;
        if (option->role == OPTION_EXTENDS) same = 0;
        if (option->role == OPTION_ROUNDS)
            return error_set("%s: trained with --%s %s; for %s choose another --out", place,
                             option->name, before.text, wanted.text);
    }
    return same;
}

/* ---- the table ------------------------------------------------------------------------------- */

static Text table_path(const TrainingPlan *plan) {
    return text_of("%s/%s.h5", plan->dir.text, plan->kind->name);
}

/* Reads the table from its file; it has no rows when there is no file. */
static int read_table(Study *study, const TrainingPlan *plan) {
    const Text path = table_path(plan);
    *study = (Study){0};
    return access(path.text, F_OK) ? 0 : study_read(study, path.text);
}

static StudyRow *find_row(const Study *study, const char *name) {
    for (int r = 0; r < study->rows; r++)
        if (strcmp(study->row[r].name, name) == 0) return &study->row[r];
    return NULL;
}

/* Returns 1 when a row has been trained to the length asked for, by its directory, or where that is
 * gone by its row in the table (NULL: none), else 0.  Returns -1 with an error set when it was
 * trained with other settings. */
static int row_finished(const TrainingRow *row, const StudyRow *had, const char *table) {
    RunFile run;
    int finished = had ? same_settings(&had->settings, row, table) : 0;
    if (finished < 0) return -1;
    int found = trainings_read_run(&run, row);
    if (!found) return finished;
    if (found > 0) found = same_settings(&run.settings, row, row->options.out);
    if (found > 0) found = !strcmp(run.status, "finished");
    runfile_free(&run);
    return found;
}

/* Finds out which rows are finished.  A row of the table is enough, because the table may come from
 * another machine, unless the experiment needs the weights. */
static int find_finished(TrainingPlan *plan) {
    Study table;
    int failed = read_table(&table, plan);
    for (int r = 0; r < plan->rows && !failed; r++) {
        TrainingRow *row = &plan->row[r];
        const StudyRow *had = plan->kind->needs_weights ? NULL : find_row(&table, row->name);
        int finished = row_finished(row, had, table_path(plan).text);
        row->finished = finished > 0;
        failed = finished < 0;
    }
    study_free(&table);
    return failed ? -1 : 0;
}

/* Adds a row of the plan to the study: its run if that has finished, with a shorter curve if it is
 * long, or else the row that the table had (NULL: none).  Returns -1 with an error set. */
static int add_row(Study *study, const TrainingPlan *plan, const TrainingRow *row, StudyRow *had) {
    RunFile run;
    int found = trainings_read_run(&run, row);
    bool finished = found > 0 && !strcmp(run.status, "finished");
    int failed = found < 0 || (finished && study_add_run(study, &run, row->name));
    runfile_free(&run);
    if (failed) return -1;
    if (finished && plan->kind->takes_hours)
        study_thin(&study->row[study->rows - 1], LONG_CURVE_ROW);
    if (finished && had) *had->name = 0;
    if (!finished && had) study_move(study, had);
    return 0;
}

/* Rewrites the table: rows of the plan first, and all others as they are in the table. */
static int write_table(const TrainingPlan *plan) {
    Study study = {0}, table;
    int failed = read_table(&table, plan);
    for (int r = 0; r < plan->rows && !failed; r++)
        failed = add_row(&study, plan, &plan->row[r], find_row(&table, plan->row[r].name));
    for (int r = 0; r < table.rows && !failed; r++)
        if (*table.row[r].name) study_move(&study, &table.row[r]);
    if (!failed) study_converge(&study);
    failed = failed || study_write(&study, table_path(plan).text);
    study_free(&study);
    study_free(&table);
    return failed ? -1 : 0;
}

/* ---- running --------------------------------------------------------------------------------- */

/* The trainings of this session. */
typedef struct {
    TrainingPlan *plan;
    int running, failed;
    double work, started; /* what was left to do when it began, and the clock then */
    double shown;         /* clock when the progress was printed last */
    bool broken;          /* an error ends the session: no process, no table */
    bool told;            /* the trainings know that they should stop */
} TrainingPool;

/* Says how long the session goes on, at its speed so far; nothing as long as that is unknown. */
static Text time_left(const TrainingPool *pool, const char *before, const char *after) {
    double left = trainings_work_left(pool->plan), done = pool->work - left,
           seconds = (clock_seconds() - pool->started) * left / done;
    if (!(left > 0) || !(done > 0)) return (Text){""};
    return text_of("%sabout %s left in all%s", before, format_time(seconds).text, after);
}

static void print_row(const TrainingPool *pool, const TrainingRow *row, const char *state) {
    const TrainingPlan *plan = pool->plan;
    if (row->options.quiet) return;
    printf("row %d of %d: %s%s%s\n", (int)(row - plan->row) + 1, plan->rows, row->name, state,
           time_left(pool, " (", ")").text);
    fflush(stdout);
}

/* Says now and then how far the trainings are.  A single one says so itself. */
static void print_progress(TrainingPool *pool) {
    const TrainingPlan *plan = pool->plan;
    const double now = clock_seconds(), every = is_terminal(stdout) ? 60 : 600;
    if (plan->asked.experiment.jobs == 1 || plan->row->options.quiet || now - pool->shown < every)
        return;
    const char *before = "";
    for (int r = 0; r < plan->rows; r++) {
        if (!plan->row[r].process) continue;
        printf("%srow %d: %.0f %%", before, r + 1, 100 * trainings_done(&plan->row[r]));
        before = ", ";
    }
    printf("%s\n", time_left(pool, "; ", "").text);
    fflush(stdout);
    pool->shown = now;
}

static bool stops(const TrainingPool *pool) { return pool->broken || interrupt_signal(); }

static void begin_row(TrainingPool *pool, TrainingRow *row) {
    print_row(pool, row, row->finished ? ": done before" : "");
    if (row->finished) return;
    pool->broken = trainings_start(pool->plan, row) != 0;
    pool->running += !pool->broken;
}

static void tell_all(TrainingPool *pool) {
    for (int r = 0; r < pool->plan->rows; r++)
        if (pool->plan->row[r].process) interrupt_tell(pool->plan->row[r].process);
    pool->told = true;
}

/* Waits until a training has ended, and returns its row. */
static TrainingRow *wait_for_row(TrainingPool *pool, int *status) {
    static const struct timespec moment = {0, 20000000};
    TrainingRow *first = pool->plan->row, *end = first + pool->plan->rows;
    for (;; nanosleep(&moment, NULL)) {
        if (stops(pool) && !pool->told) tell_all(pool);
        if (!stops(pool)) print_progress(pool);
        *status = 1; /* if there is no such process */
        for (TrainingRow *row = first; row < end; row++)
            if (row->process && waitpid(row->process, status, WNOHANG) != 0) return row;
    }
}

/* Waits until a training has ended, and writes the table.  One that fails has said why. */
static void end_row(TrainingPool *pool) {
    int status;
    TrainingRow *row = wait_for_row(pool, &status);
    row->process = 0;
    pool->running--;
    if (status) pool->work -= row->work * (1 - trainings_done(row)); /* which nobody does now */
    row->ended = true;
    if (!stops(pool)) {
        pool->failed += status != 0;
        if (WIFSIGNALED(status))
            print_row(pool, row, ": killed");
        else if (status ||
                 pool->plan->asked.experiment.jobs > 1) /* a single one has printed its result */
            print_row(pool, row, status ? ": failed" : ": trained");
    }
    if (write_table(pool->plan)) pool->broken = true;
}

/* Trains the rows that find_finished has not found finished. */
static int run_plan(TrainingPlan *plan) {
    const double now = clock_seconds();
    TrainingPool pool = {
        .plan = plan, .work = trainings_work_left(plan), .started = now, .shown = now};
    interrupt_catch();
    for (int r = 0; r < plan->rows; r++) {
        if (!plan->row[r].finished && pool.running == plan->asked.experiment.jobs) end_row(&pool);
        if (stops(&pool)) break;
        begin_row(&pool, &plan->row[r]);
    }
    while (pool.running) end_row(&pool);
    if (pool.broken || write_table(plan)) return -1;
    if (interrupt_signal()) {
        printf("stopped; the same command continues\n");
        return interrupt_status();
    }
    if (!pool.failed) return 0;
    return error_set("%d of %d rows failed and are not in the table", pool.failed, plan->rows);
}

/* Prints the tables of the trainings, as bcd report does. */
static int print_tables(const TrainingPlan *plan) {
    Study study = {0};
    Tables tables = {0};
    Cases cases = {0};
    int failed =
        study_read(&study, table_path(plan).text) || study_tables(&tables, &cases, &study, true);
    if (!failed) printf("\n");
    for (int t = 0; t < tables.tables && !failed; t++)
        failed = table_print(stdout, tables.table[t]);
    tables_free(&tables);
    cases_free(&cases);
    study_free(&study);
    return failed ? -1 : 0;
}

int trainings_run(const TrainingKind *kind, const CommandLine *asked) {
    TrainingPlan plan;
    const DeviceModule *device;
    int status = trainings_plan(&plan, kind, asked);
    if (!status) status = setup_device(&device, &asked->options); /* before anything is made */
    if (!status) status = find_finished(&plan);
    /* One that has begun already has printed its estimate. */
    bool begun = asked->experiment.yes && !access(rundir_path(plan.dir.text, "rows").text, F_OK);
    if (!status && plan.long_run && !begun) status = trainings_estimate(&plan);
    if (!status && (!plan.long_run || asked->experiment.yes)) {
        if (*plan.missing.text && !asked->options.quiet)
            printf("%s (data/fetch downloads the data sets)\n", plan.missing.text);
        status = rundir_make(plan.dir.text) ? -1 : run_plan(&plan);
        if (!status && !asked->options.quiet) {
            status = print_tables(&plan);
            const Text path = table_path(&plan);
            printf("table: %s; as a page: bcd report %s\n", path.text, quoted(path.text).text);
        }
    }
    trainings_free(&plan);
    return status;
}
