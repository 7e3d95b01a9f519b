/* Times whole training steps: a full update, and each third by BCD. */
#include <stdio.h>
#include <stdlib.h>

#include "../../experiments/inspect/operations.h"
#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "../../ref/engine.h"
#include "bench.h"
#include "work.h"

typedef struct {
    Model *model;
    Engine *engine;
    Batch batch;
    OptimizerSettings optimizer;
    bool *active;
} Trainer;

static void trainer_close(Trainer *t) {
    if (t->engine) engine_free(t->engine);
    batch_free(&t->batch);
    model_free(t->model);
    free(t->active);
}

static int trainer_open(Trainer *t, const char *spec, const char *optimizer, int batch) {
    *t = (Trainer){.model = model_create(spec)};
    if (!t->model) return -1;
    if (work_optimizer(&t->optimizer, optimizer)) return -1;
    t->active = malloc((size_t)t->model->blocks * sizeof *t->active);
    if (!t->active || batch_reserve(&t->batch, t->model, batch)) return -1;
    t->batch.n = batch;
    work_fill(&t->batch, t->model);
    StageSettings settings = {.batch = batch, .optimizer = t->optimizer, .seed = 1};
    Stage *stage = stage_ref_create(t->model, settings);
    if (!stage) return -1;
    t->engine = engine_single_create(stage, (EngineSettings){.micro_batches = 1}, NULL);
    return t->engine ? 0 : -1;
}

static int activate(Trainer *t, int part) {
    work_active(t->active, t->model, part);
    return engine_activate(t->engine, t->active);
}

/* Random targets cannot be learnt; a low rate keeps the loss finite however long this runs. */
static int timed_step(Trainer *t, double *ms) {
    Loss loss;
    double start = bench_now_ms();
    int failed = engine_step(t->engine, &t->batch, 1e-3 * t->optimizer.lr, &loss);
    *ms = bench_now_ms() - start;
    return failed;
}

static int measure(Trainer *t, Times times[PARTS], double flops[PARTS], int rounds, int steps) {
    for (int round = 0; round < rounds; round++)
        for (int part = 0; part < PARTS; part++) {
            double ms;
            if (activate(t, part) || timed_step(t, &ms)) return -1;
            if (model_operations(&flops[part], t->model, t->active, 0, 0)) return -1;
            flops[part] *= t->batch.n;
            for (int i = 0; i < steps; i++) {
                bench_progress("%s: round %d of %d, part %d of %d, step %d: %.1f ms",
                               t->model->name, round + 1, rounds, part + 1, PARTS, i + 1, ms);
                if (timed_step(t, &ms)) return -1;
                times_add(&times[part], ms);
            }
        }
    return 0;
}

static void print(const Trainer *t, const Times times[PARTS], const double flops[PARTS],
                  Machine machine) {
    const Model *m = t->model;
    double full = times_median(&times[0]);
    printf("\n%s, %zu parameters, batch %d, %s: %.0f %s/s\n", m->name, m->param_count, t->batch.n,
           optimizer_names[t->optimizer.kind], 1e3 / full * t->batch.n * m->targets,
           m->tokens ? "tokens" : "images");
    printf("%-14s %10s %23s %8s %8s %8s %10s %5s\n", "", "median", "min .. max", "/ full",
           "by FLOPs", "GFLOP", "GFLOP/s", "peak");
    for (int part = 0; part < PARTS; part++) {
        double ms = times_median(&times[part]), rate = flops[part] / ms * 1e-6;
        printf("%-14s %7.1f ms %8.1f .. %8.1f ms %8.3f %8.3f %8.2f %10.0f %4.0f%%\n",
               part_names[part], ms, times_min(&times[part]), times_max(&times[part]), ms / full,
               flops[part] / flops[0], flops[part] * 1e-9, rate, 100 * rate / machine.gflops);
    }
}

int bench_steps(const char *spec, const char *optimizer, int batch, Machine machine, int rounds,
                int steps) {
    Trainer t;
    Times times[PARTS] = {{0}};
    double flops[PARTS];
    int status = trainer_open(&t, spec, optimizer, batch);
    if (!status) status = measure(&t, times, flops, rounds, steps);
    bench_progress_end();
    if (!status) print(&t, times, flops, machine);
    trainer_close(&t);
    return status;
}

int bench_serve(const char *spec, const char *optimizer, int batch) {
    Trainer t;
    int part, steps, status = trainer_open(&t, spec, optimizer, batch);
    if (!status) printf("ready %zu\n", t.model->param_count);
    fflush(stdout);
    while (!status && scanf("%d %d", &part, &steps) == 2) {
        double ms;
        if (part < 0 || part >= PARTS)
            status = error_set("bench: part %d is not in 0..%d", part, THIRDS);
        if (!status) status = activate(&t, part) || timed_step(&t, &ms);
        for (int i = 0; i < steps && !status; i++) {
            status = timed_step(&t, &ms);
            printf("%.3f ", ms);
        }
        printf("\n");
        fflush(stdout);
    }
    trainer_close(&t);
    return status;
}
