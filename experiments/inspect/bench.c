#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../base/alloc.h"
#include "../train/progress.h"

int bench_open(Bench *bench, const Options *options, bool by_block) {
    Setup *setup = &bench->setup;
    *bench = (Bench){0};
    if (setup_open(setup, options)) return -1;
    size_t blocks = (size_t)setup->model->blocks;
    int n = setup->options.batch;
    bench->active = xmalloc(blocks * sizeof *bench->active);
    bench->now = by_block ? xcalloc(2 * blocks, sizeof *bench->now) : NULL;
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
        for (int pass = 0; pass < PASSES; pass++)
            kept->ms[pass] = fmin(kept->ms[pass], now.ms[pass]);
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
    if (engine_activate(engine, bench->active)) return -1;
    for (int i = -pace.warm;
         i < pace.max_steps && (i < pace.min_steps || spent_ms < pace.enough_ms); i++) {
        Loss loss;
        double start = clock_seconds();
        if (engine_step(engine, &bench->batch, setup->options.optimizer.lr, &loss)) return -1;
        double took = 1e3 * (clock_seconds() - start);
        if (i < 0) continue;
        *step_ms = i ? fmin(*step_ms, took) : took;
        keep_min(bench, i == 0);
        spent_ms += took;
    }
    return 0;
}

void bench_costs(BlockCost *block, const Bench *bench, int micro_batches, double step_ms) {
    const Model *m = bench->setup.model;
    double trained = 0, rest = step_ms - bench->min_update_ms, each = 1e-3 / micro_batches;
    int batch = (bench->batch.n + micro_batches - 1) / micro_batches;
    for (int p = 0; p < m->params; p++)
        if (bench->active[m->param[p].block]) trained += (double)m->param[p].count;
    for (int b = 0; b < m->blocks; b++) {
        const BlockTimes *t = &bench->min_times[b];
        block[b] = (BlockCost){.out_bytes = (double)value_count(m, m->block[b].out, batch) *
                                            (double)value_bytes(&bench->setup.stage_settings)};
        for (int pass = 0; pass < PASSES; pass++) {
            block[b].pass_s[pass] = each * t->ms[pass];
            rest -= t->ms[pass];
        }
        for (int p = m->block[b].first_param; p < m->block[b].end_param && bench->active[b]; p++)
            block[b].update_s += 1e-3 * bench->min_update_ms * (double)m->param[p].count / trained;
    }
    block[m->blocks - 1].pass_s[PASS_FORWARD] += each * fmax(0, rest);
}
