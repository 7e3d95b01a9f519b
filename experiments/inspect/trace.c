/* `bcd trace`: times a step of every submodel, block by block. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "../../ref/memory.h"
#include "../commands.h"
#include "../store/provenance.h"
#include "../study/converge.h"
#include "../train/bench.h"
#include "trace.h"

static void trace_free(Trace *trace) {
    free(trace->active);
    free(trace->cost);
}

static int trace_reserve(Trace *trace, int blocks, int submodel) {
    size_t n = (size_t)blocks;
    *trace = (Trace){.submodel = submodel,
                     .active = calloc(n, sizeof *trace->active),
                     .cost = calloc(n, sizeof *trace->cost)};
    return trace->active && trace->cost ? 0 : error_set("trace: out of memory");
}

static void fill_costs(Trace *trace, const BlockTimes *times, const BlockMemory *bytes,
                       int blocks) {
    for (int b = 0; b < blocks; b++) {
        double *cost = trace->cost[b];
        cost[COST_FORWARD] = times[b].forward_ms;
        cost[COST_INPUT_GRADIENT] = times[b].input_gradient_ms;
        cost[COST_WEIGHT_GRADIENT] = times[b].weight_gradient_ms;
        cost[COST_PARAMETERS] = (double)bytes[b].parameters;
        cost[COST_ACTIVATIONS] = (double)bytes[b].activations;
        cost[COST_GRADIENTS] = (double)bytes[b].gradients;
        cost[COST_STATE] = (double)bytes[b].state;
        for (int c = 0; c < COSTS; c++) trace->total[c] += cost[c];
    }
}

/* Runs a step to warm up, then up to eight, fewer if they take long. */
static int run_trace(Bench *bench, Trace *trace) {
    const BenchPace pace = {1, 1, 8, 2000};
    const Setup *setup = &bench->setup;
    const Model *model = setup->model;
    size_t blocks = (size_t)model->blocks;
    double step_ms;
    BlockMemory *bytes = calloc(blocks, sizeof *bytes);
    int failed = !bytes ? error_set("trace: out of memory")
                        : bench_steps(bench, trace->submodel, pace, &step_ms) ||
                              memory_blocks(bytes, model, &setup->stage_settings, bench->active);
    if (!failed) fill_costs(trace, bench->min_times, bytes, model->blocks);
    free(bytes);
    if (failed) return -1;
    memcpy(trace->active, bench->active, blocks * sizeof *trace->active);
    trace->update_ms = bench->min_update_ms;
    trace->passes_ms = trace->total[COST_FORWARD] + trace->total[COST_INPUT_GRADIENT] +
                       trace->total[COST_WEIGHT_GRADIENT];
    trace->all_bytes = (double)setup->engine->is->memory(setup->engine)->total_current;
    return model_operations(&trace->flops, model, trace->active, setup->stage_settings.correct_lr);
}

/* Traces the full update, then the submodels asked for. */
static int run_all(Bench *bench, Trace *traces, int count, int first) {
    for (int i = 0; i < count; i++)
        if (trace_reserve(&traces[i], bench->setup.model->blocks, i ? first + i - 1 : -1) ||
            run_trace(bench, &traces[i]))
            return -1;
    return 0;
}

static void print_all(const Setup *setup, const Provenance *provenance, const Trace *traces,
                      int count) {
    const Options *o = &setup->options;
    const Model *model = setup->model;
    printf("%s: %zu parameters in %d blocks\n", model->name, model->param_count, model->blocks);
    printf("one %s step of %d %s%s, %s, ", optimizer_names[o->optimizer], o->batch,
           model->tokens ? "sequences" : "images",
           o->method == METHOD_OFFLOAD ? ", optimizer in host memory" : "", provenance->precision);
    if (!setup->device)
        printf("%d thread%s, ", provenance->threads, provenance->threads > 1 ? "s" : "");
    printf("%s\n\n", provenance_computer(provenance));
    if (count == 1) trace_print(setup, &traces[0], &traces[0]);
    for (int i = 1; i < count; i++) trace_print(setup, &traces[i], &traces[0]);
    trace_print_summary(traces, count);
    printf(
        "\nactive   trained: input gradient, weight gradient, optimizer state\n"
        "frozen   only passes the input gradient on to the active blocks below it\n"
        "prefix   below the lowest active block: forward only; keeps at most its output, for the "
        "next\n"
        "         (. means nothing to do, or nothing to keep)\n"
        "/ full   this step as a fraction of one that updates everything; operations: the same "
        "from\n"
        "         the shapes alone.  Each time is the shortest of a few steps, after one to warm "
        "up%s.\n",
        setup->device ? ",\n         by the device's own clock" : "");
}

static int trace_all(Bench *bench, const Options *options) {
    const Setup *setup = &bench->setup;
    int submodels = setup->bcd.partition.submodels, first = 0, count = submodels + 1;
    if (options->active > submodels)
        return error_set("--active %d: there are %d submodels, counted from 1", options->active,
                         submodels);
    if (options->active) {
        first = options->active - 1;
        count = 2;
    } else if (submodels == 1)
        count = 1;
    Trace *traces = calloc((size_t)count, sizeof *traces);
    if (!traces) return error_set("trace: out of memory");
    Provenance provenance;
    int failed = run_all(bench, traces, count, first) ||
                 setup_provenance(&provenance, &setup->options) ||
                 trace_write(setup, traces, count);
    if (!failed) print_all(setup, &provenance, traces, count);
    for (int i = 0; i < count; i++) trace_free(&traces[i]);
    free(traces);
    return failed;
}

int command_trace(const Options *options) {
    Options asked = *options;
    Bench bench;
    bool given = options_given(options, "submodels") || *options->partition;
    if (!given && options->method != METHOD_OFFLOAD) asked.submodels = 3;
    int failed = bench_open(&bench, &asked, true) || trace_all(&bench, options);
    bench_close(&bench);
    return failed ? -1 : 0;
}
