/* Times whole training steps: a full update, and each third by BCD. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/engine.h"
#include "../../ref/error.h"
#include "../../ref/layout.h"
#include "../../ref/random.h"
#include "bench.h"

enum { THIRDS = 3, PARTS = 1 + THIRDS }; /* part 0 is the full update */

typedef struct {
    Model *model;
    Engine *engine;
    Batch batch;
    OptimizerSettings optimizer;
    bool *active;
} Trainer;

/* The first and the last block are left out, as in the usual account of what a submodel costs. */
static void set_active(const Trainer *t, int part) {
    int body = t->model->blocks - 2;
    for (int b = 0; b < t->model->blocks; b++)
        t->active[b] = part == 0 || (b > 0 && b <= body && (b - 1) * THIRDS / body == part - 1);
}

static void fill_batch(const Trainer *t) {
    const Model *m = t->model;
    size_t n = (size_t)t->batch.n, inputs = n * shape_count(m->input);
    for (size_t i = 0; i < inputs; i++)
        if (m->tokens)
            t->batch.tokens[i] = (int)random_below(1, STREAM_SYNTHETIC, i, (uint32_t)m->outputs);
        else
            t->batch.images[i] = (real)random_normal(1, STREAM_SYNTHETIC, i);
    for (size_t i = 0; i < n * (size_t)m->targets; i++)
        t->batch.targets[i] = (int)random_below(2, STREAM_SYNTHETIC, i, (uint32_t)m->outputs);
    for (int i = 0; i < t->batch.n; i++) t->batch.ids[i] = i;
}

static void trainer_close(Trainer *t) {
    if (t->engine) t->engine->is->free(t->engine);
    batch_free(&t->batch);
    model_free(t->model);
    free(t->active);
}

static int trainer_open(Trainer *t, const char *spec, const char *optimizer, int batch) {
    *t = (Trainer){.model = model_create(spec)};
    if (!t->model) return -1;
    int kind = 0;
    while (kind < OPTIMIZER_KINDS && strcmp(optimizer_names[kind], optimizer)) kind++;
    if (kind == OPTIMIZER_KINDS) return error_set("bench: no optimizer \"%s\"", optimizer);
    t->optimizer = optimizer_defaults((OptimizerKind)kind);
    t->active = malloc((size_t)t->model->blocks * sizeof *t->active);
    if (!t->active || batch_reserve(&t->batch, t->model, batch)) return -1;
    t->batch.n = batch;
    fill_batch(t);
    StageSettings settings = {.batch = batch, .optimizer = t->optimizer, .seed = 1};
    Stage *stage = stage_ref_create(t->model, settings);
    if (!stage) return -1;
    t->engine = engine_single_create(stage, (EngineSettings){.micro_batches = 1}, NULL);
    return t->engine ? 0 : -1;
}

static int activate(Trainer *t, int part) {
    set_active(t, part);
    return t->engine->is->activate(t->engine, t->active);
}

/* Random targets cannot be learnt: a low rate keeps the loss finite for as long as it takes. */
static int timed_step(Trainer *t, double *ms) {
    Loss loss;
    double start = bench_now_ms();
    int failed = t->engine->is->step(t->engine, &t->batch, 1e-3 * t->optimizer.lr, &loss);
    *ms = bench_now_ms() - start;
    return failed;
}

/* What the multiply-adds of a step amount to: forward everywhere, input gradients above the lowest
 * active parameter, weight gradients of active blocks. */
static double step_flops(const Trainer *t) {
    const Model *m = t->model;
    StageSettings settings = {.batch = t->batch.n};
    Layout layout;
    double flops = 0;
    if (layout_make(&layout, m, &settings, t->active)) return 0;
    for (int i = 0; i < m->nodes; i++) {
        const Node *node = &m->node[i];
        flops += node_flops(node, PHASE_FORWARD);
        if (layout.differentiated[node->in]) flops += node_flops(node, PHASE_INPUT_GRADIENT);
        if (node_trains(m, node, t->active)) flops += node_flops(node, PHASE_WEIGHT_GRADIENT);
    }
    layout_free(&layout);
    return flops * t->batch.n;
}

static int measure(Trainer *t, Times times[PARTS], double flops[PARTS], int rounds, int steps) {
    for (int round = 0; round < rounds; round++)
        for (int part = 0; part < PARTS; part++) {
            double ms;
            if (activate(t, part) || timed_step(t, &ms)) return -1;
            flops[part] = step_flops(t);
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
    static const char *const names[PARTS] = {"full", "bottom third", "middle third", "top third"};
    const Model *m = t->model;
    double full = times_median(&times[0]);
    printf("\n%s, %zu parameters, batch %d, %s: %.0f %s/s\n", m->name, m->param_count, t->batch.n,
           optimizer_names[t->optimizer.kind], 1e3 / full * t->batch.n * m->targets,
           m->tokens ? "tokens" : "images");
    printf("%-14s %10s %23s %8s %8s %8s %10s %5s\n", "", "median", "least .. most", "/ full",
           "by FLOPs", "GFLOP", "GFLOP/s", "peak");
    for (int part = 0; part < PARTS; part++) {
        double ms = times_median(&times[part]), rate = flops[part] / ms * 1e-6;
        printf("%-14s %7.1f ms %8.1f .. %8.1f ms %8.3f %8.3f %8.2f %10.0f %4.0f%%\n", names[part],
               ms, times_least(&times[part]), times_most(&times[part]), ms / full,
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
