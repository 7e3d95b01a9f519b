/* Measures small models here: each submodel against the full update, and pipelines of threads
 * against their simulation from measured block times. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/layout.h"
#include "../alloc.h"
#include "../train/bench.h"
#include "paper.h"

enum { THIRDS = 3 };

static const MeasuredNetwork smoke[] = {
    {"gpt:layers=10,width=32,heads=2,context=32", "text", "adam", "8"}, {0}};
static const MeasuredNetwork small[] = {
    {"gpt:layers=10,width=96,heads=4,context=64", "text", "adam", "16"},
    {"resnet20", "synthetic", "sgd", "128"},
    {0},
};

const MeasuredNetwork *timing_networks(int preset) {
    return preset == PRESET_SMOKE ? smoke : small;
}

/* ---- timing a method ------------------------------------------------------------------------- */

typedef struct {
    int submodels, micro_batches; /* of a step */
    int ranks;                    /* of a pipeline of threads; 0: a stage without pipeline */
    PlacementKind placement;
    bool cached; /* the outputs of the frozen prefix */
} NetworkMethod;

/* A method that was timed. */
typedef struct {
    Bench bench;
    double step_ms[THIRDS], mean_ms;
    BlockCost *block; /* [submodels][blocks] of a stage without pipeline; else NULL */
} Timed;

static void timed_close(Timed *timed) {
    bench_close(&timed->bench);
    free(timed->block);
}

static int set_method(Options *o, const Options *asked, const MeasuredNetwork *network,
                      const NetworkMethod *method) {
    if (measured_options(o, asked, network, method->submodels) ||
        options_set_all(o, "accumulate=%d%s", method->micro_batches,
                        method->cached ? " cache=1G" : ""))
        return -1;
    if (!method->ranks) return 0;
    return options_set_all(o, "pipeline=local:%d placement=%s", method->ranks,
                           placement_names[method->placement]);
}

/* Times a step of each submodel with one thread per rank, after two steps that warm up and fill the
 * cache.  The caller calls timed_close, also on failure. */
static int time_method(Timed *timed, const CommandLine *asked, const MeasuredNetwork *network,
                       const NetworkMethod *method) {
    BenchPace pace = {2, 3, asked->experiment.preset == PRESET_SMOKE ? 3 : 30, 500};
    int threads = omp_get_max_threads();
    bool by_block = method->ranks == 0;
    Options options;
    *timed = (Timed){.mean_ms = 0};
    omp_set_num_threads(method->ranks > 1 ? method->ranks : 1);
    int failed = set_method(&options, &asked->options, network, method) ||
                 bench_open(&timed->bench, &options, by_block);
    size_t blocks = failed ? 0 : (size_t)timed->bench.setup.model->blocks;
    if (!failed && by_block)
        timed->block = xcalloc(blocks * (size_t)method->submodels, sizeof *timed->block);
    for (int k = 0; k < method->submodels && !failed; k++) {
        double *ms = &timed->step_ms[k];
        failed = bench_steps(&timed->bench, k, pace, ms);
        timed->mean_ms += *ms / method->submodels;
        if (!failed && by_block)
            bench_costs(timed->block + (size_t)k * blocks, &timed->bench, method->micro_batches,
                        *ms);
    }
    omp_set_num_threads(threads);
    return failed ? -1 : 0;
}

/* ---- submodels on one stage ------------------------------------------------------------------ */

static void put_share(Table *table, int k, double ms, double cached_ms, double full_ms) {
    table_put(table, 0, ms, ms / full_ms, timing_flop_ratio(k, THIRDS, false), cached_ms,
              cached_ms / full_ms, timing_flop_ratio(k, THIRDS, true));
}

int paper_add_shares(Tables *tables, const CommandLine *asked, const MeasuredNetwork *network,
                     int number) {
    static const TableColumn columns[] = {
        {"step", "step", "ms", COLUMN_NUMBER, 2, SOURCE_MEASURED},
        {"share", "of full", "", COLUMN_NUMBER, 3, SOURCE_MEASURED},
        {"theory", "theory", "", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
        {"cached", "cached", "ms", COLUMN_NUMBER, 2, SOURCE_MEASURED},
        {"cached_share", "of full", "", COLUMN_NUMBER, 3, SOURCE_MEASURED},
        {"cached_theory", "theory", "", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
    };
    enum { FULL, PLAIN, CACHED, METHODS };
    static const NetworkMethod methods[METHODS] = {
        [FULL] = {.submodels = 1, .micro_batches = 1},
        [PLAIN] = {.submodels = THIRDS, .micro_batches = 1},
        [CACHED] = {.submodels = THIRDS, .micro_batches = 1, .cached = true}};
    Timed timed[METHODS];
    Text name = text_of("measured%d", number);
    Text title =
        text_of("A step here, of each submodel: %.80s, batch %s", network->model, network->batch);
    Table *table = tables_add(tables, name.text, title.text, "update", columns, 6);
    for (int m = 0; m < METHODS; m++) {
        int failed = time_method(&timed[m], asked, network, &methods[m]);
        timed_close(&timed[m]);
        if (failed) return -1;
    }
    const Timed *plain = &timed[PLAIN], *cached = &timed[CACHED];
    double full_ms = timed[FULL].mean_ms;
    table_row(table, "full");
    table_put(table, 0, full_ms);
    for (int k = 0; k < THIRDS; k++) {
        table_row(table, "1/3 submodel %d", k + 1);
        put_share(table, k + 1, plain->step_ms[k], cached->step_ms[k], full_ms);
    }
    table_row(table, "1/3 mean");
    put_share(table, 0, plain->mean_ms, cached->mean_ms, full_ms);
    table_note(
        table,
        "One thread; submodels balanced by parameters.  \"cached\": the outputs of the prefix "
        "come from the cache.  The theory assumes equal submodels without embedding, head and "
        "optimizer; convolutions of lower blocks cost more per parameter.");
    return 0;
}

/* ---- pipelines ------------------------------------------------------------------------------- */

/* Simulates the step of a pipeline from the block times of one stage.  Messages between threads
 * take no time: copying the outputs of a block takes less than a percent of a step. */
static int simulate_pipeline(double *step_ms, const Setup *pipeline, const BlockCost *block,
                             const NetworkMethod *method) {
    Gpu machine = {.key = "here",
                   .name = "this machine",
                   .interconnect_bandwidth = INFINITY,
                   .memory_bytes = INFINITY};
    Efficiency efficiency = efficiency_default;
    efficiency.interconnect_latency_s = 0;
    Configuration c = {.model = pipeline->model,
                       .cluster = {&machine, method->ranks, 1, INFINITY, efficiency},
                       .stage = pipeline->stage_settings,
                       .schedule = pipeline->pipeline.kind,
                       .submodels = method->submodels,
                       .pipeline = method->ranks,
                       .replicas = 1,
                       .micro_batches = method->micro_batches,
                       .slack = pipeline->pipeline.slack,
                       .cached = method->cached,
                       .placed = &pipeline->placement};
    Prediction p;
    if (simulate(&p, NULL, &c, block)) return -1;
    *step_ms = 1e3 * p.step_s;
    return 0;
}

static int add_pipeline(Table *table, const CommandLine *asked, const MeasuredNetwork *network,
                        const NetworkMethod *method, const BlockCost *block) {
    Timed timed;
    double ms = NAN;
    int failed = time_method(&timed, asked, network, method) ||
                 simulate_pipeline(&ms, &timed.bench.setup, block, method);
    timed_close(&timed);
    if (failed) return -1;
    table_row(table, "%s %s", method->submodels > 1 ? "BCD-1/3" : "full",
              placement_names[method->placement]);
    table_put(table, 0, method->ranks, method->micro_batches, timed.mean_ms, ms,
              ms / timed.mean_ms - 1);
    return 0;
}

/* Returns the blocks of the smallest submodel; virtual stages need one for each rank. */
static int fewest_blocks(const Setup *setup) {
    const Partition *partition = &setup->bcd.partition;
    int fewest = setup->model->blocks;
    for (int k = 0; k < partition->submodels; k++) {
        int blocks = 0;
        for (int b = 0; b < setup->model->blocks; b++) blocks += partition->of_block[b] == k;
        if (blocks < fewest) fewest = blocks;
    }
    return fewest;
}

/* Measures the block times of one stage, then the pipelines. */
static int add_pipelines_of(Table *table, const CommandLine *asked, const MeasuredNetwork *network,
                            int submodels, int micro_batches) {
    Timed stage;
    NetworkMethod method = {.submodels = submodels, .micro_batches = micro_batches};
    int failed = time_method(&stage, asked, network, &method);
    int fewest = failed ? 0 : fewest_blocks(&stage.bench.setup);
    bench_close(&stage.bench);
    for (PlacementKind p = PLACEMENT_PLAIN; p <= PLACEMENT_VIRTUAL && !failed; p++)
        for (int ranks = 1; ranks <= 2 && !failed; ranks++) {
            if (p == PLACEMENT_VIRTUAL && (submodels == 1 || ranks == 1 || fewest < ranks))
                continue;
            if (ranks > omp_get_num_procs()) continue;
            method.ranks = ranks;
            method.placement = p;
            failed = add_pipeline(table, asked, network, &method, stage.block);
        }
    free(stage.block);
    return failed;
}

int paper_add_pipelines(Tables *tables, const CommandLine *asked, const MeasuredNetwork *network,
                        int number) {
    static const TableColumn columns[] = {
        {"ranks", "ranks", "", COLUMN_NUMBER, 0, SOURCE_NONE},
        {"micro_batches", "micro-b.", "", COLUMN_NUMBER, 0, SOURCE_NONE},
        {"measured", "measured", "ms", COLUMN_NUMBER, 2, SOURCE_MEASURED},
        {"simulated", "simulated", "ms", COLUMN_NUMBER, 2, SOURCE_SIMULATED},
        {"deviation", "off", "", COLUMN_DEVIATION, 1, SOURCE_NONE},
    };
    Text name = text_of("pipeline%d", number);
    Text title = text_of("Pipelines of threads, measured and simulated: %.70s, batch %s",
                         network->model, network->batch);
    Table *table = tables_add(tables, name.text, title.text, "step", columns, 5);
    static const int some[] = {1, 4, 0}, more[] = {1, 2, 4, 8, 0};
    const int *micro_batches = asked->experiment.preset == PRESET_SMOKE ? some : more;
    for (int submodels = 1; submodels <= THIRDS; submodels += THIRDS - 1)
        for (int i = 0; micro_batches[i]; i++)
            if (add_pipelines_of(table, asked, network, submodels, micro_batches[i])) return -1;
    table_note(
        table,
        "Simulated from the block times of one stage on one thread, with as large "
        "micro-batches; 1F1B; a rank per thread.  Messages between threads take no time in the "
        "simulation.");
    return 0;
}
