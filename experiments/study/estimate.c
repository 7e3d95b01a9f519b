/* Estimates how long a plan takes: on this machine from a few measured steps of each network, on a
 * rented GPU by simulation. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../dist/simulate.h"
#include "../../ref/base/error.h"
#include "../store/rundir.h"
#include "../tables/table.h"
#include "../train/bench.h"
#include "trainings.h"

/* One GPU that could be rented. */
typedef struct {
    const char *gpu;         /* key of gpu_table */
    double hours;            /* of all rows so far */
    double dollars_per_hour; /* 0: not known */
    int too_large;           /* rows that do not fit its memory */
} Rent;
enum { RENTS = 2 };

static const TableColumn columns[] = {
    {"steps", "updates", "", COLUMN_NUMBER, 0, SOURCE_CLOSED_FORM},
    {"rtx4090_hours", "RTX 4090", "hours", COLUMN_NUMBER, 2, SOURCE_SIMULATED},
    {"rtx4090_dollars", "RTX 4090", "dollars", COLUMN_NUMBER, 2, SOURCE_SIMULATED},
    {"a100_hours", "A100", "hours", COLUMN_NUMBER, 2, SOURCE_SIMULATED},
    {"a100_dollars", "A100", "dollars", COLUMN_NUMBER, 2, SOURCE_SIMULATED},
};

/* Puts hours and their price into the last row. */
static void put_rent(Table *table, int g, const Rent *rent, double hours) {
    double price = rent->dollars_per_hour;
    table_put(table, 1 + 2 * g, hours, price > 0 ? hours * price : NAN);
}

/* Adds a training of so many steps, also to the last row.  Returns -1 with an error set. */
static int add_rent(Table *table, int g, Rent *rent, const Setup *setup, double steps,
                    const char *prices) {
    Prediction prediction;
    const Gpu *gpu = gpu_find(rent->gpu);
    Configuration configuration = {
        .model = setup->model,
        .cluster = {.gpu = gpu, .per_node = 1, .nodes = 1, .efficiency = efficiency_default},
        .stage = setup->stage_settings,
        .placement = PLACEMENT_PLAIN,
        .submodels = setup->options.submodels,
        .pipeline = 1,
        .replicas = 1,
        .micro_batches = setup->options.accumulate,
    };
    if (!gpu || price_find(&rent->dollars_per_hour, gpu, prices) ||
        simulate(&prediction, NULL, &configuration, NULL))
        return -1;
    double hours = steps * prediction.step_s / 3600;
    rent->hours += hours;
    rent->too_large += !prediction.fits;
    put_rent(table, g, rent, hours);
    return 0;
}

static void print_rent(const Rent *rent) {
    printf("on one %s, simulated: %.3g hours", gpu_find(rent->gpu)->name, rent->hours);
    if (rent->dollars_per_hour > 0)
        printf(", %.2f dollars at %.2f an hour", rent->hours * rent->dollars_per_hour,
               rent->dollars_per_hour);
    if (rent->too_large) printf("; %d trainings do not fit its memory", rent->too_large);
    printf("\n");
}

/* Measures row->step_seconds unless they are known, as the faster of two steps; sets row->work, and
 * says and adds to the table what the row takes. */
static int add_row(Table *table, TrainingRow *row, Rent rent[RENTS], const char *prices) {
    Bench bench = {0};
    const int m = row->options.submodels;
    double ms;
    int failed;
    if (row->step_seconds == 0) {
        failed = bench_open(&bench, &row->options, false) ||
                 bench_steps(&bench, -1, (BenchPace){.min_steps = 2, .max_steps = 2}, &ms);
        if (!failed) row->step_seconds = 1e-3 * ms;
    } else {
        failed = setup_open(&bench.setup, &row->options) != 0;
    }
    double steps = failed ? 0 : (double)bench.setup.bcd.steps;
    row->work = steps * row->step_seconds * (m > 1 ? 0.5 + 0.5 / m : 1);
    table_row(table, "%s", row->name);
    table_put(table, 0, steps);
    for (int g = 0; g < RENTS && !failed; g++)
        failed = add_rent(table, g, &rent[g], &bench.setup, steps, prices);
    bench_close(&bench);
    if (!failed)
        printf("  %-52s %9.0f steps %14s\n", row->name, steps, format_time(row->work).text);
    return failed ? -1 : 0;
}

static bool same_network(const Options *a, const Options *b) {
    return !strcmp(a->model, b->model) && !strcmp(a->data, b->data) && a->batch == b->batch;
}

/* Adds the last row and writes the file. */
static int write_estimate(Tables *tables, const TrainingPlan *plan, const Rent rent[RENTS]) {
    const CommandLine *asked = &plan->asked;
    const Text path = text_of("%s/%s-%s-estimate.h5", plan->dir.text, plan->kind->name,
                              preset_names[asked->experiment.preset]);
    table_row(tables->table[0], "together");
    for (int g = 0; g < RENTS; g++) put_rent(tables->table[0], g, &rent[g], rent[g].hours);
    return setup_provenance(&tables->provenance, &asked->options) || rundir_make(plan->dir.text) ||
                   tables_write(tables, asked, path.text)
               ? -1
               : 0;
}

int trainings_estimate(TrainingPlan *plan) {
    Tables tables = {0};
    Table *table = tables_add(&tables, "estimate", "What the trainings would take on a rented GPU",
                              "training", columns, 1 + 2 * RENTS);
    Rent rent[RENTS] = {{.gpu = "rtx4090"}, {.gpu = "a100"}};
    int failed = 0, finished = 0;
    for (int r = 0; r < plan->rows; r++) finished += plan->row[r].finished;
    printf("%d trainings", plan->rows - finished);
    if (finished) printf(", and %d done before", finished);
    printf("; timing a few steps of each network\n");
    for (int r = 0; r < plan->rows && !failed; r++) {
        TrainingRow *row = &plan->row[r];
        if (row->finished) continue;
        fflush(stdout);
        for (int earlier = 0; earlier < r; earlier++)
            if (!plan->row[earlier].finished &&
                same_network(&row->options, &plan->row[earlier].options))
                row->step_seconds = plan->row[earlier].step_seconds;
        failed = add_row(table, row, rent, plan->asked.cost.price);
    }
    failed = failed || write_estimate(&tables, plan, rent);
    tables_free(&tables);
    if (failed) return -1;
    printf("together about %s on this machine, evaluations not counted%s\n",
           format_time(trainings_work_left(plan)).text,
           plan->asked.experiment.yes ? "" : "; start it with --yes");
    for (int g = 0; g < RENTS; g++) print_rent(&rent[g]);
    return 0;
}
