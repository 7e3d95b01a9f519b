#include "bench.h"

#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../ref/error.h"
#include "../../ref/layout.h"
#include "../train/pipeline.h"

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static double lesser(double a, double b) { return a < b ? a : b; }

/* ---- opening ------------------------------------------------------------------------------------
 */

static int set_number(Options *o, const char *name, int value) {
    char text[24];
    snprintf(text, sizeof text, "%d", value);
    return options_set(o, name, text);
}

static int set_all(Options *o, const Options *asked, const BenchNetwork *network,
                   const BenchMethod *method) {
    char ranks[24];
    snprintf(ranks, sizeof ranks, "local:%d", method->ranks);
    options_defaults(o, COMMAND_TRAIN);
    o->device = asked->device;
    o->precision = asked->precision;
    int failed = options_set(o, "model", network->model) || options_set(o, "data", network->data) ||
                 options_set(o, "optimizer", network->optimizer) ||
                 options_set(o, "batch", network->batch) || options_set(o, "limit", "256") ||
                 set_number(o, "submodels", method->submodels) ||
                 set_number(o, "accumulate", method->parts);
    if (!failed && method->cached) failed = options_set(o, "cache", "1G");
    if (!failed && method->ranks)
        failed = options_set(o, "pipeline", ranks) ||
                 options_set(o, "placement", placement_names[method->placement]);
    return failed ? -1 : 0;
}

/* ---- steps --------------------------------------------------------------------------------------
 */

typedef struct {
    BenchTimes *times;
    Setup *setup;
    Batch batch;
    BlockTimes *now, *least; /* [blocks]; NULL in a pipeline */
    double update_ms, least_update_ms;
    const BenchMethod *method;
} Bench;

static void keep_least(Bench *bench, bool first) {
    for (int b = 0; bench->now && b < bench->setup->model->blocks; b++) {
        BlockTimes *kept = &bench->least[b], now = bench->now[b];
        if (first) *kept = now;
        kept->forward_ms = lesser(kept->forward_ms, now.forward_ms);
        kept->input_gradient_ms = lesser(kept->input_gradient_ms, now.input_gradient_ms);
        kept->weight_gradient_ms = lesser(kept->weight_gradient_ms, now.weight_gradient_ms);
    }
    bench->least_update_ms =
        first ? bench->update_ms : lesser(bench->least_update_ms, bench->update_ms);
}

/* Two steps to warm up (which fill a cache), then a few; what disturbs a machine only ever adds. */
static int time_steps(Bench *bench, double *step_ms) {
    enum { WARM = 2, AT_LEAST = 3 };
    const double enough_ms = 500;
    Engine *engine = bench->setup->engine;
    double spent_ms = 0;
    for (int i = -WARM; i < bench->method->tries && (i < AT_LEAST || spent_ms < enough_ms); i++) {
        Loss loss;
        double start = now_ms();
        if (engine->is->step(engine, &bench->batch, bench->setup->options.lr, &loss)) return -1;
        double took = now_ms() - start;
        if (i < 0) continue;
        *step_ms = i ? lesser(*step_ms, took) : took;
        keep_least(bench, i == 0);
        spent_ms += took;
    }
    return 0;
}

/* Per micro-batch.  What the step took beside blocks and update (the loss, above all) counts as
 * forward of the last block. */
static void fill_costs(const Bench *bench, BlockCost *block, const bool *active, double step_ms) {
    const Model *m = bench->setup->model;
    double trained = 0, rest = step_ms - bench->least_update_ms;
    for (int p = 0; p < m->params; p++)
        if (active[m->param[p].block]) trained += (double)m->param[p].count;
    for (int b = 0; b < m->blocks; b++) {
        const StageSettings *settings = &bench->setup->stage_settings;
        BlockTimes t = bench->least[b];
        int batch = (bench->batch.n + bench->method->parts - 1) / bench->method->parts;
        double each = 1e-3 / bench->method->parts;
        block[b] = (BlockCost){.pass_s = {each * t.forward_ms, each * t.input_gradient_ms,
                                          each * t.weight_gradient_ms},
                               .out_bytes = (double)value_count(m, m->block[b].out, batch) *
                                            (double)value_bytes(settings)};
        for (int p = m->block[b].first_param; p < m->block[b].end_param && active[b]; p++)
            block[b].update_s +=
                1e-3 * bench->least_update_ms * (double)m->param[p].count / trained;
        rest -= t.forward_ms + t.input_gradient_ms + t.weight_gradient_ms;
    }
    block[m->blocks - 1].pass_s[PASS_FORWARD] += 1e-3 * fmax(0, rest) / bench->method->parts;
}

static int time_submodels(Bench *bench) {
    const Setup *setup = bench->setup;
    const Partition *partition = &setup->bcd.partition;
    size_t blocks = (size_t)setup->model->blocks;
    bool *active = malloc(blocks * sizeof *active);
    int failed = active ? 0 : error_set("timing: out of memory");
    for (int k = 0; k < partition->submodels && !failed; k++) {
        double *ms = &bench->times->step_ms[k];
        partition_active(partition, setup->model, k, active);
        failed = setup->engine->is->activate(setup->engine, active) || time_steps(bench, ms);
        if (failed) break;
        bench->times->mean_ms += *ms / partition->submodels;
        if (bench->now) fill_costs(bench, bench->times->block + (size_t)k * blocks, active, *ms);
    }
    free(active);
    return failed ? -1 : 0;
}

static int open_engine(Bench *bench, const BenchMethod *method) {
    Setup *setup = bench->setup;
    size_t blocks = (size_t)setup->model->blocks;
    if (!method->ranks) {
        bench->now = calloc(2 * blocks, sizeof *bench->now);
        bench->times->block =
            calloc(blocks * (size_t)method->submodels, sizeof *bench->times->block);
        if (!bench->now || !bench->times->block) return error_set("timing: out of memory");
        bench->least = bench->now + blocks;
    }
    omp_set_num_threads(method->ranks > 1 ? method->ranks : 1);
    if (setup_engine(setup, NULL, bench->now, bench->now ? &bench->update_ms : NULL) ||
        batch_reserve(&bench->batch, setup->model, setup->options.batch))
        return -1;
    bench->batch.n = setup->options.batch;
    for (int i = 0; i < bench->batch.n; i++) bench->batch.ids[i] = i % setup->train->samples;
    setup->train->fetch(setup->train, &bench->batch, 0);
    return 0;
}

int bench_run(BenchTimes *times, Setup *setup, const Options *asked, const BenchNetwork *network,
              const BenchMethod *method) {
    int threads = omp_get_max_threads();
    Options options;
    *times = (BenchTimes){0};
    *setup = (Setup){0};
    Bench bench = {.times = times, .setup = setup, .method = method};
    int failed = set_all(&options, asked, network, method) || setup_open(setup, &options) ||
                 open_engine(&bench, method) || time_submodels(&bench);
    batch_free(&bench.batch);
    free(bench.now);
    if (setup->engine) setup->engine->is->free(setup->engine);
    setup->engine = NULL;
    omp_set_num_threads(threads);
    return failed ? -1 : 0;
}

/* ---- simulated ----------------------------------------------------------------------------------
 */

int bench_simulate(double *step_ms, const Setup *pipeline, const BlockCost *block,
                   const BenchMethod *method, double latency_s, double rate) {
    Gpu here = {.key = "here", .name = "this machine", .link_rate = rate, .memory_bytes = INFINITY};
    Practice practice = practice_default;
    practice.link = 1;
    practice.link_latency_s = latency_s;
    Configuration c = {.model = pipeline->model,
                       .cluster = {&here, method->ranks, 1, rate, practice},
                       .stage = pipeline->stage_settings,
                       .schedule = pipeline->pipeline.kind,
                       .submodels = method->submodels,
                       .pipeline = method->ranks,
                       .replicas = 1,
                       .micro_batches = method->parts,
                       .slack = pipeline->pipeline.slack,
                       .cached = method->cached,
                       .placed = &pipeline->placement};
    Prediction p;
    if (simulate(&p, NULL, &c, block)) return -1;
    *step_ms = 1e3 * p.step_s;
    return 0;
}
