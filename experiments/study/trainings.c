#include "trainings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../data/data.h"
#include "../../ref/error.h"
#include "../store/rundir.h"
#include "../store/settings.h"
#include "../train/interrupt.h"
#include "../train/progress.h"
#include "../train/setup.h"
#include "../train/train.h"
#include "converge.h"
#include "measures.h"
#include "study_file.h"

/* Compares the settings of a training with those that a row asks for.  Returns 1 when they are the
 * same; 0 when the row asks for a longer training; -1 with an error set that names `place`
 * otherwise. */
static int same_settings(const Options *had, const TrainingRow *row, const char *place) {
    char before[OPTION_TEXT], wanted[OPTION_TEXT];
    Options now = *had;
    int same = 1;
    if (settings_resume(&now, &row->options)) return error_set("%s: %s", place, error_message());
    for (int o = 0; option_table[o].name; o++) {
        const Option *option = &option_table[o];
        if (!row->options.given[o] ||
            strcmp(options_format(had, o, before), options_format(&row->options, o, wanted)) == 0)
            continue;
        if (option->role == OPTION_EXTENDS) same = 0;
        if (option->role == OPTION_ROUNDS)
            return error_set("%s: trained with --%s %s; for %s choose another --out", place,
                             option->name, before, wanted);
    }
    return same;
}

/* Reads run.h5 of a row.  Returns 1, 0 when there is none, or -1 with an error set. */
static int read_run(RunFile *run, const TrainingRow *row) {
    char path[RUNDIR_PATH];
    *run = (RunFile){0};
    rundir_path(path, row->options.out, "run.h5");
    if (access(path, F_OK)) return 0;
    return runfile_read(run, path) ? -1 : 1;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Adds the run of a row to the study if it has finished; thin: with a shorter curve.  Returns 1
 * when it was added, 0, or -1 with an error set. */
static int collect(Study *study, const TrainingRow *row, bool thin) {
    RunFile run;
    int added = read_run(&run, row);
    if (added > 0) added = !strcmp(run.status, "finished");
    if (added > 0 && study_add_run(study, &run, row->name)) added = -1;
    if (added > 0 && thin) study_thin(&study->row[study->rows - 1], LONG_CURVE_ROW);
    runfile_free(&run);
    return added;
}

static void table_path(char path[RUNDIR_PATH], const TrainingPlan *plan) {
    char file[64];
    snprintf(file, sizeof file, "%s.h5", plan->kind->name);
    rundir_path(path, plan->dir, file);
}

/* Reads the table from its file; it has no rows when there is no file. */
static int read_table(Study *study, const TrainingPlan *plan) {
    char path[RUNDIR_PATH];
    table_path(path, plan);
    *study = (Study){0};
    return access(path, F_OK) ? 0 : study_read(study, path);
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
    int found = read_run(&run, row);
    if (!found) return finished;
    if (found > 0) found = same_settings(&run.settings, row, row->options.out);
    if (found > 0) found = !strcmp(run.status, "finished");
    runfile_free(&run);
    return found;
}

/* Finds out which rows are finished.  A row of the table is enough, because the table may come from
 * another machine, unless the experiment needs the weights. */
static int find_finished(TrainingPlan *plan) {
    char path[RUNDIR_PATH];
    Study table;
    table_path(path, plan);
    int failed = read_table(&table, plan);
    for (int r = 0; r < plan->rows && !failed; r++) {
        TrainingRow *row = &plan->row[r];
        const StudyRow *had = plan->kind->needs_weights ? NULL : find_row(&table, row->name);
        int finished = row_finished(row, had, path);
        row->finished = finished > 0;
        failed = finished < 0;
    }
    study_free(&table);
    return failed ? -1 : 0;
}

/* Rewrites the table: rows of the plan whose runs have finished from their directories, all others
 * as they are in the table. */
static int write_table(const TrainingPlan *plan) {
    char path[RUNDIR_PATH];
    Study study = {0}, table;
    int failed = read_table(&table, plan);
    for (int r = 0; r < plan->rows && !failed; r++) {
        const TrainingRow *row = &plan->row[r];
        StudyRow *had = find_row(&table, row->name);
        int added = collect(&study, row, plan->kind->takes_hours);
        failed = added < 0 || (!added && had && study_move(&study, had));
        if (had) *had->name = 0;
    }
    for (int r = 0; r < table.rows && !failed; r++)
        if (*table.row[r].name) failed = study_move(&study, &table.row[r]);
    table_path(path, plan);
    failed = failed || study_converge(&study) || study_write(&study, path);
    study_free(&study);
    study_free(&table);
    return failed ? -1 : 0;
}

/* ---- running --------------------------------------------------------------------------------- */

typedef struct {
    const TrainingPlan *plan;
    double work_left, work_done, seconds; /* of this session */
} TrainingProgress;

static void print_row(const TrainingProgress *pace, int number, const char *state) {
    const TrainingPlan *plan = pace->plan;
    char left[32];
    printf("row %d of %d: %s%s", number + 1, plan->rows, plan->row[number].name, state);
    if (pace->work_done > 0 && !*state)
        printf(" (about %s left in all)",
               format_time(pace->seconds / pace->work_done * pace->work_left, left));
    printf("\n");
    fflush(stdout);
}

static void print_result(const RunSummary *summary, const Options *o) {
    char took[32], loss[32], text[80];
    if (summary->seconds < 10)
        snprintf(took, sizeof took, "%.1f s", summary->seconds);
    else
        format_time(summary->seconds, took);
    printf("  %llu steps in %s: training loss %s, validation %s\n",
           (unsigned long long)summary->steps, took, format_loss(summary->train_loss, loss),
           eval_format(&summary->valid, data_is_tokens(o->data) == 1, text));
}

/* Returns true for a training whose loss was not finite, which does not stop the other rows. */
static bool has_failed(const TrainingRow *row) {
    RunFile run;
    bool failed = read_run(&run, row) > 0 && !strcmp(run.status, "failed");
    runfile_free(&run);
    return failed;
}

typedef enum { ROW_ERROR = -1, ROW_DONE, ROW_FOUND, ROW_STOPPED, ROW_FAILED } TrainingEnd;

static TrainingEnd run_row(TrainingProgress *pace, int number) {
    const TrainingRow *row = &pace->plan->row[number];
    if (!row->options.quiet) print_row(pace, number, row->finished ? ": done before" : "");
    pace->work_left -= row->work;
    if (row->finished) return ROW_FOUND;
    double start = clock_seconds();
    RunSummary summary;
    Options options = row->options;
    /* Not with the threads of a process that --jobs started before. */
    if (options_set_all(&options, "threads=%d", pace->plan->threads)) return ROW_ERROR;
    if (train_run(&options, &summary)) {
        char cause[ERROR_BYTES];
        snprintf(cause, sizeof cause, "%s", error_message());
        if (has_failed(row)) {
            printf("  failed: %s\n", cause);
            return ROW_FAILED;
        }
        error_set("%s", cause);
        return ROW_ERROR;
    }
    pace->seconds += clock_seconds() - start;
    pace->work_done += row->work;
    if (!summary.interrupted && !row->options.quiet) print_result(&summary, &row->options);
    return summary.interrupted ? ROW_STOPPED : ROW_DONE;
}

/* Prints the tables of the trainings, as bcd report does. */
static int print_tables(const TrainingPlan *plan) {
    char path[RUNDIR_PATH];
    Study study = {0};
    Tables tables = {0};
    Cases cases = {0};
    table_path(path, plan);
    int failed = study_read(&study, path) || study_prepare(&study) || cases_make(&cases, &study) ||
                 study_tables(&tables, &cases, true);
    if (!failed) printf("\n");
    for (int t = 0; t < tables.tables && !failed; t++)
        failed = table_print(stdout, tables.table[t]);
    tables_free(&tables);
    cases_free(&cases);
    study_free(&study);
    return failed ? -1 : 0;
}

static int stopped(const TrainingPlan *plan) {
    if (write_table(plan)) return -1;
    printf("stopped; the same command continues\n");
    return interrupt_status();
}

/* Trains the rows that find_finished has not found finished. */
static int run_plan(TrainingPlan *plan, bool quiet) {
    TrainingProgress pace = {.plan = plan};
    if (*plan->missing && !quiet)
        printf("%s (data/fetch downloads the data sets)\n", plan->missing);
    int failed = 0;
    if (plan->jobs > 1) {
        interrupt_catch();
        if (trainings_run_parallel(plan) || find_finished(plan)) return -1;
    }
    if (interrupt_signal()) return stopped(plan);
    for (int r = 0; r < plan->rows; r++) pace.work_left += plan->row[r].work;
    for (int r = 0; r < plan->rows; r++) {
        TrainingEnd end = run_row(&pace, r);
        if (end == ROW_ERROR) return -1;
        if (end == ROW_STOPPED) return stopped(plan);
        failed += end == ROW_FAILED;
        /* The table is rewritten as a whole, hence not after each row that was there before. */
        if ((end != ROW_FOUND || r + 1 == plan->rows) && write_table(plan)) return -1;
    }
    if (failed)
        return error_set("%d of %d rows failed and are not in the table", failed, plan->rows);
    return 0;
}

/* Returns true when a long experiment has begun already, so that its estimate has been printed. */
static bool goes_on(const TrainingPlan *plan, const CommandLine *asked) {
    char path[RUNDIR_PATH];
    rundir_path(path, plan->dir, "rows");
    return asked->experiment.yes && access(path, F_OK) == 0;
}

int trainings_run(const TrainingKind *kind, const CommandLine *asked) {
    TrainingPlan plan;
    const DeviceModule *device;
    int status = trainings_plan(&plan, kind, asked);
    if (!status) status = setup_device(&device, &asked->options); /* before anything is made */
    if (!status) status = find_finished(&plan);
    if (!status && plan.long_run && !goes_on(&plan, asked))
        status = trainings_estimate(&plan, asked);
    if (!status && (!plan.long_run || asked->experiment.yes)) {
        status = rundir_make(plan.dir) ? -1 : run_plan(&plan, asked->options.quiet);
        if (!status && !asked->options.quiet) {
            status = print_tables(&plan);
            char path[RUNDIR_PATH], name[QUOTED];
            table_path(path, &plan);
            printf("table: %s; as a page: bcd report %s\n", path, quoted(name, path));
        }
    }
    trainings_free(&plan);
    return status;
}
