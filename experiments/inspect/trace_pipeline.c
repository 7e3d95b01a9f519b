#include "trace_pipeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../dist/simulate.h"
#include "../base/alloc.h"

BenchPace trace_pace(const TraceFlags *flags, bool twice) {
    const int min = flags->steps < 2 ? flags->steps : 2;
    return (BenchPace){twice ? 2 : 1, min, flags->steps, 500};
}

int trace_pipeline_check(const Options *o) {
    if (!strcmp(o->pipeline, "none") || !strncmp(o->pipeline, "local:", 6)) return 0;
    return error_set("--pipeline %.40s: bcd trace times local:N, threads of this process",
                     o->pipeline);
}

/* Messages between threads take no time here: copying the outputs of a block takes less than a
 * percent of a step. */
static int simulate_pipeline(double *mean_ms, double *submodel_s, const Setup *s,
                             const BlockCost *block) {
    const Gpu machine = {.key = "here",
                         .name = "this machine",
                         .interconnect_bandwidth = INFINITY,
                         .memory_bytes = INFINITY};
    Efficiency efficiency = efficiency_default;
    efficiency.interconnect_latency_s = 0;
    const Configuration c = {.model = s->model,
                             .cluster = {&machine, s->ranks, 1, INFINITY, efficiency},
                             .stage = s->stage_settings,
                             .schedule = s->pipeline.kind,
                             .submodels = s->bcd.partition.submodels,
                             .pipeline = s->ranks / s->options.replicas,
                             .replicas = s->options.replicas,
                             .micro_batches = s->pipeline.micro_batches,
                             .cached = s->options.cache > 0,
                             .placed = &s->placement};
    Prediction p;
    if (simulate(&p, submodel_s, &c, block)) return -1;
    *mean_ms = 1e3 * p.step_s;
    return 0;
}

static void put(Table *table, const char *label, double measured_ms, double simulated_ms) {
    table_row(table, "%s", label);
    table_put(table, 0, measured_ms, simulated_ms, simulated_ms / measured_ms - 1);
}

static int fill(Tables *tables, Bench *bench, const BlockCost *block, double *submodel_s,
                BenchPace pace) {
    static const TableColumn columns[] = {
        {"measured", "measured", "ms", COLUMN_NUMBER, 2, SOURCE_MEASURED},
        {"simulated", "simulated", "ms", COLUMN_NUMBER, 2, SOURCE_SIMULATED},
        {"deviation", "off", "", COLUMN_DEVIATION, 1, SOURCE_NONE},
    };
    const Setup *s = &bench->setup;
    const int submodels = s->bcd.partition.submodels;
    double mean_ms = 0, simulated_ms;
    if (simulate_pipeline(&simulated_ms, submodel_s, s, block)) return -1;
    const Text title =
        text_of("A step of %d x %d ranks, %d micro-batches, %s, %s: measured and simulated",
                s->options.replicas, s->placement.ranks, s->pipeline.micro_batches,
                placement_names[s->placement.kind], schedule_names[s->pipeline.kind]);
    Table *table = tables_add(tables, "pipeline", title.text, "step", columns,
                              (int)(sizeof columns / sizeof *columns));
    for (int k = 0; k < submodels; k++) {
        double ms;
        if (bench_steps(bench, k, pace, &ms)) return -1;
        mean_ms += ms / submodels;
        put(table, submodels > 1 ? text_of("submodel %d", k + 1).text : "full update", ms,
            1e3 * submodel_s[k]);
    }
    if (submodels > 1) put(table, "mean", mean_ms, simulated_ms);
    table_note(table,
               "Simulated from the block times of one stage, with as large micro-batches and as "
               "many threads as a rank has.  Messages between threads take no time in the "
               "simulation.  Measured: the shortest of a few steps.");
    return 0;
}

int trace_pipeline(Tables *tables, Bench *pipeline, const BlockCost *block,
                   const TraceFlags *flags) {
    const size_t submodels = (size_t)pipeline->setup.bcd.partition.submodels;
    double *submodel_s = xcalloc(submodels, sizeof *submodel_s);
    const int failed = fill(tables, pipeline, block, submodel_s, trace_pace(flags, true));
    free(submodel_s);
    return failed;
}
