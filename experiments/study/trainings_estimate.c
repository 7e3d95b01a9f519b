/* How long a plan would take on this machine, from a few steps of each network. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "../train/progress.h"
#include "../train/setup.h"
#include "trainings.h"

/* Seconds of one step with every block active: the lesser of two, the first also warming up. */
static int time_step(Setup *setup, double *seconds) {
    Batch batch = {0};
    Engine *engine = setup->engine;
    size_t blocks = (size_t)setup->model->blocks;
    bool *active = malloc(blocks * sizeof *active);
    int n = setup->options.batch, failed = batch_reserve(&batch, setup->model, n);
    if (!active) failed = error_set("experiment: out of memory");
    if (!failed) {
        memset(active, 1, blocks * sizeof *active);
        for (int i = 0; i < n; i++) batch.ids[i] = i % setup->train->samples;
        batch.n = n;
        setup->train->fetch(setup->train, &batch, 0);
        failed = engine->is->activate(engine, active);
    }
    *seconds = 0;
    for (int i = 0; i < 2 && !failed; i++) {
        Loss loss;
        double start = clock_seconds();
        failed = engine->is->step(engine, &batch, setup->options.lr, &loss);
        double took = clock_seconds() - start;
        if (i == 0 || took < *seconds) *seconds = took;
    }
    batch_free(&batch);
    free(active);
    return failed;
}

enum { RENTS = 2 };

/* Steps of a row, and seconds of one full step where that is not known yet (0). */
static int measure_row(const PlanRow *row, double *steps, double *step_seconds, Rent rent[RENTS],
                       const char *prices) {
    Setup setup;
    int failed = setup_open(&setup, &row->options) != 0;
    if (!failed && *step_seconds == 0)
        failed = setup_engine(&setup, NULL, NULL, NULL) || time_step(&setup, step_seconds);
    *steps = failed ? 0 : (double)setup.bcd.steps;
    for (int g = 0; g < RENTS && !failed; g++) failed = plan_rent(&rent[g], &setup, *steps, prices);
    setup_free(&setup);
    return failed ? -1 : 0;
}

static bool same_network(const Options *a, const Options *b) {
    return !strcmp(a->model, b->model) && !strcmp(a->data, b->data) && a->batch == b->batch;
}

int plan_estimate(Plan *plan, const Options *asked) {
    double *step_seconds = calloc((size_t)plan->rows, sizeof *step_seconds), total = 0;
    if (!step_seconds) return error_set("experiment: out of memory");
    Rent rent[RENTS] = {{.gpu = "rtx4090"}, {.gpu = "a100"}};
    char text[32];
    int failed = 0;
    printf("%d trainings; timing a few steps of each network\n", plan->rows);
    for (int r = 0; r < plan->rows && !failed; r++) {
        const Options *o = &plan->row[r].options;
        double steps;
        fflush(stdout);
        for (int twin = 0; twin < r; twin++)
            if (same_network(o, &plan->row[twin].options)) step_seconds[r] = step_seconds[twin];
        failed = measure_row(&plan->row[r], &steps, &step_seconds[r], rent, asked->price);
        if (failed) break;
        double part = o->submodels > 1 ? 0.5 + 0.5 / o->submodels : 1;
        double seconds = steps * step_seconds[r] * part;
        plan->row[r].work = seconds;
        total += seconds;
        printf("  %-52s %9.0f steps %14s\n", plan->row[r].name, steps, format_time(seconds, text));
    }
    free(step_seconds);
    if (failed) return -1;
    printf("together about %s on this machine, evaluations not counted%s\n",
           format_time(total, text), asked->yes ? "" : "; start it with --yes");
    for (int g = 0; g < RENTS; g++) plan_rent_print(&rent[g]);
    return 0;
}
