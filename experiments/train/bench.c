#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "progress.h"

int bench_open(Bench *bench, const Options *options, bool by_block) {
    Setup *setup = &bench->setup;
    *bench = (Bench){0};
    if (setup_open(setup, options)) return -1;
    size_t blocks = (size_t)setup->model->blocks;
    int n = setup->options.batch;
    bench->active = malloc(blocks * sizeof *bench->active);
    bench->now = by_block ? calloc(2 * blocks, sizeof *bench->now) : NULL;
    if (!bench->active || (by_block && !bench->now)) return error_set("bench: out of memory");
    bench->min_times = by_block ? bench->now + blocks : NULL;
    if (setup_engine(setup, NULL, bench->now, by_block ? &bench->update_ms : NULL) ||
        batch_reserve(&bench->batch, setup->model, n))
        return -1;
    bench->batch.n = n;
    for (int i = 0; i < n; i++) bench->batch.ids[i] = i % setup->train->samples;
    setup->train->fetch(setup->train, &bench->batch, 0);
    return 0;
}

void bench_close(Bench *bench) {
    batch_free(&bench->batch);
    free(bench->active);
    free(bench->now);
    setup_free(&bench->setup);
}

static void keep_min(Bench *bench, bool first) {
    for (int b = 0; bench->now && b < bench->setup.model->blocks; b++) {
        BlockTimes *kept = &bench->min_times[b], now = bench->now[b];
        if (first) *kept = now;
        kept->forward_ms = fmin(kept->forward_ms, now.forward_ms);
        kept->input_gradient_ms = fmin(kept->input_gradient_ms, now.input_gradient_ms);
        kept->weight_gradient_ms = fmin(kept->weight_gradient_ms, now.weight_gradient_ms);
    }
    bench->min_update_ms = first ? bench->update_ms : fmin(bench->min_update_ms, bench->update_ms);
}

int bench_steps(Bench *bench, int submodel, BenchPace pace, double *step_ms) {
    Setup *setup = &bench->setup;
    Engine *engine = setup->engine;
    double spent_ms = 0;
    if (submodel < 0)
        memset(bench->active, 1, (size_t)setup->model->blocks * sizeof *bench->active);
    else
        partition_active(&setup->bcd.partition, setup->model, submodel, bench->active);
    if (engine->is->activate(engine, bench->active)) return -1;
    for (int i = -pace.warm;
         i < pace.max_steps && (i < pace.min_steps || spent_ms < pace.enough_ms); i++) {
        Loss loss;
        double start = clock_seconds();
        if (engine->is->step(engine, &bench->batch, setup->options.lr, &loss)) return -1;
        double took = 1e3 * (clock_seconds() - start);
        if (i < 0) continue;
        *step_ms = i ? fmin(*step_ms, took) : took;
        keep_min(bench, i == 0);
        spent_ms += took;
    }
    return 0;
}
