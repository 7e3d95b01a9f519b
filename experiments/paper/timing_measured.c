/* Small models here: each submodel against the full update, and pipelines of threads against their
 * simulation from measured block times. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "../train/bench.h"
#include "timing.h"

enum { THIRDS = 3, MOST_PARTS = 4 };

static const BenchNetwork smallest[] = {
    {"gpt:layers=10,width=32,heads=2,context=32", "text", "adam", "8"}, {NULL, NULL, NULL, NULL}};
static const BenchNetwork small[] = {
    {"gpt:layers=10,width=96,heads=4,context=64", "text", "adam", "16"},
    {"resnet20", "synthetic", "sgd", "128"},
    {NULL, NULL, NULL, NULL},
};

static const struct {
    const BenchNetwork *network;
    int tries, parts[MOST_PARTS]; /* micro-batches */
} presets[PRESET_KINDS] = {[PRESET_SMOKE] = {smallest, 3, {1, 4}},
                           [PRESET_LAPTOP] = {small, 30, {1, 2, 4, 8}},
                           [PRESET_GPU] = {small, 30, {1, 2, 4, 8}},
                           [PRESET_PAPER] = {small, 30, {1, 2, 4, 8}}};

/* ---- submodels on one stage ---------------------------------------------------------------------
 */

enum { M_MS, M_SHARE, M_THEORY, M_CACHED_MS, M_CACHED_SHARE, M_CACHED_THEORY, M_COLUMNS };
static const TableColumn share_columns[M_COLUMNS] = {
    [M_MS] = {"step", "step", "ms", COLUMN_NUMBER, 2},
    [M_SHARE] = {"share", "of full", "", COLUMN_NUMBER, 3},
    [M_THEORY] = {"theory", "theory", "", COLUMN_NUMBER, 3},
    [M_CACHED_MS] = {"cached", "cached", "ms", COLUMN_NUMBER, 2},
    [M_CACHED_SHARE] = {"cached_share", "of full", "", COLUMN_NUMBER, 3},
    [M_CACHED_THEORY] = {"cached_theory", "theory", "", COLUMN_NUMBER, 3},
};

static int run(BenchTimes *times, const Options *asked, const BenchNetwork *network,
               const BenchMethod *method) {
    Setup setup;
    int failed = bench_run(times, &setup, asked, network, method);
    setup_free(&setup);
    free(times->block);
    times->block = NULL;
    return failed;
}

static void put_share(Table *table, int k, double ms, double cached_ms, double full_ms) {
    table_number(table, M_MS, ms, SOURCE_MEASURED);
    table_number(table, M_SHARE, ms / full_ms, SOURCE_MEASURED);
    table_number(table, M_THEORY, timing_theory(k, THIRDS, false), SOURCE_CLOSED_FORM);
    table_number(table, M_CACHED_MS, cached_ms, SOURCE_MEASURED);
    table_number(table, M_CACHED_SHARE, cached_ms / full_ms, SOURCE_MEASURED);
    table_number(table, M_CACHED_THEORY, timing_theory(k, THIRDS, true), SOURCE_CLOSED_FORM);
}

static int put_shares(Table *table, const Options *asked, const BenchNetwork *network) {
    BenchTimes full, thirds, cached;
    BenchMethod method = {.submodels = 1, .parts = 1, .tries = presets[asked->preset].tries};
    if (run(&full, asked, network, &method)) return -1;
    method.submodels = THIRDS;
    if (run(&thirds, asked, network, &method)) return -1;
    method.cached = true;
    if (run(&cached, asked, network, &method)) return -1;
    table_row(table, "full");
    table_number(table, M_MS, full.mean_ms, SOURCE_MEASURED);
    for (int k = 0; k < THIRDS; k++) {
        table_row(table, "1/3 submodel %d", k + 1);
        put_share(table, k + 1, thirds.step_ms[k], cached.step_ms[k], full.mean_ms);
    }
    table_row(table, "1/3 mean");
    put_share(table, 0, thirds.mean_ms, cached.mean_ms, full.mean_ms);
    table_note(
        table,
        "One thread, least of a few steps; submodels balanced by parameters.  \"cached\": the "
        "prefix's outputs come from the cache.  Theory knows equal parts without embedding, "
        "head and optimizer; convolutions of the lower blocks cost more per parameter.");
    return 0;
}

/* ---- pipelines ----------------------------------------------------------------------------------
 */

enum { P_RANKS, P_PARTS, P_MEASURED, P_SIMULATED, P_OFF, P_COLUMNS };
static const TableColumn pipeline_columns[P_COLUMNS] = {
    [P_RANKS] = {"ranks", "ranks", "", COLUMN_NUMBER, 0},
    [P_PARTS] = {"micro_batches", "micro-b.", "", COLUMN_NUMBER, 0},
    [P_MEASURED] = {"measured", "measured", "ms", COLUMN_NUMBER, 2},
    [P_SIMULATED] = {"simulated", "simulated", "ms", COLUMN_NUMBER, 2},
    [P_OFF] = {"deviation", "off", "", COLUMN_DEVIATION, 1},
};

typedef struct {
    double latency_s, rate, off;
    int rows;
} Comparison;

static int put_pipeline(Table *table, const Options *asked, const BenchNetwork *network,
                        const BenchMethod *method, const BlockCost *block, Comparison *all) {
    BenchTimes times;
    Setup setup;
    double ms = NAN;
    int failed = bench_run(&times, &setup, asked, network, method) ||
                 bench_simulate(&ms, &setup, block, method, all->latency_s, all->rate);
    setup_free(&setup);
    if (failed) return -1;
    table_row(table, "%s %s", method->submodels > 1 ? "BCD-1/3" : "full",
              placement_names[method->placement]);
    table_number(table, P_RANKS, method->ranks, SOURCE_NONE);
    table_number(table, P_PARTS, method->parts, SOURCE_NONE);
    table_number(table, P_MEASURED, times.mean_ms, SOURCE_MEASURED);
    table_number(table, P_SIMULATED, ms, SOURCE_SIMULATED);
    table_deviation(table, P_OFF, P_SIMULATED, P_MEASURED);
    all->off += fabs(ms / times.mean_ms - 1);
    all->rows++;
    return 0;
}

/* The blocks of the smallest submodel: virtual stages need one for each rank. */
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

/* Full or BCD, with so many micro-batches: block times of one stage, then the pipelines. */
static int put_pipelines(Table *table, const Options *asked, const BenchNetwork *network,
                         int submodels, int parts, Comparison *all) {
    BenchTimes stage;
    Setup setup;
    BenchMethod method = {
        .submodels = submodels, .parts = parts, .tries = presets[asked->preset].tries};
    int failed = bench_run(&stage, &setup, asked, network, &method);
    int fewest = failed ? 0 : fewest_blocks(&setup);
    setup_free(&setup);
    for (PlacementKind p = PLACEMENT_PLAIN; p <= PLACEMENT_VIRTUAL && !failed; p++)
        for (int ranks = 1; ranks <= 2 && !failed; ranks++) {
            if (p == PLACEMENT_VIRTUAL && (submodels == 1 || ranks == 1 || fewest < ranks))
                continue;
            if (ranks > omp_get_num_procs()) continue;
            method.ranks = ranks;
            method.placement = p;
            failed = put_pipeline(table, asked, network, &method, stage.block, all);
        }
    free(stage.block);
    return failed;
}

static int add_pipelines(Tables *tables, const Options *asked, const BenchNetwork *network,
                         const char *name) {
    char title[160];
    Comparison all = {0};
    snprintf(title, sizeof title, "Pipelines of threads, measured and simulated: %.70s, batch %s",
             network->model, network->batch);
    Table *table = tables_add(tables, name, title, "step", pipeline_columns, P_COLUMNS);
    if (!table || bench_link(&all.latency_s, &all.rate)) return -1;
    const int *parts = presets[asked->preset].parts;
    for (int submodels = 1; submodels <= THIRDS; submodels += THIRDS - 1)
        for (int i = 0; i < MOST_PARTS && parts[i]; i++)
            if (put_pipelines(table, asked, network, submodels, parts[i], &all)) return -1;
    table_note(
        table,
        "Simulated from the block times of one stage on one thread, with as large "
        "micro-batches; 1F1B; a rank per thread.  The link between threads, measured: %.1f us, "
        "%.1f GB/s.  Mean absolute deviation %.1f %%.",
        1e6 * all.latency_s, 1e-9 * all.rate, 100 * all.off / all.rows);
    return 0;
}

static int add_network(Tables *tables, const Options *asked, const BenchNetwork *network, int n) {
    char name[48], title[160];
    snprintf(name, sizeof name, "measured%d", n);
    snprintf(title, sizeof title, "A step here, of each submodel: %.80s, batch %s", network->model,
             network->batch);
    Table *table = tables_add(tables, name, title, "update", share_columns, M_COLUMNS);
    if (!table || put_shares(table, asked, network)) return -1;
    snprintf(name, sizeof name, "pipeline%d", n);
    return add_pipelines(tables, asked, network, name);
}

/* A model of the command line: the batch of the preset's first. */
static int find_network(BenchNetwork *network, const BenchNetwork *like, const char *name) {
    Model *model = setup_model(name, 0, 0);
    if (!model) return -1;
    *network = (BenchNetwork){name, model->tokens ? "text" : "synthetic",
                              model->tokens ? "adam" : "sgd", like->batch};
    model_free(model);
    return 0;
}

int timing_measure(Tables *tables, const Options *options) {
    const BenchNetwork *network = presets[options->preset].network;
    char models[OPTION_TEXT];
    int n = 0;
    snprintf(models, sizeof models, "%s", options->models);
    for (char *name = strtok(models, " "); name; name = strtok(NULL, " ")) {
        BenchNetwork asked;
        if (find_network(&asked, network, name) || add_network(tables, options, &asked, ++n))
            return -1;
    }
    for (; !*options->models && network->model; network++)
        if (add_network(tables, options, network, ++n)) return -1;
    return 0;
}
