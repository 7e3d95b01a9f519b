/* `bcd trace`: times a step of every submodel, block by block. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "../commands.h"
#include "../store/provenance.h"
#include "../study/converge.h"
#include "../train/bench.h"
#include "trace.h"

static void trace_free(Trace *trace) {
    free(trace->active);
    free(trace->times);
    free(trace->bytes);
}

static int trace_reserve(Trace *trace, int blocks, int submodel) {
    size_t n = (size_t)blocks;
    *trace = (Trace){.submodel = submodel,
                     .active = calloc(n, sizeof *trace->active),
                     .times = calloc(n, sizeof *trace->times),
                     .bytes = calloc(n, sizeof *trace->bytes)};
    return trace->active && trace->times && trace->bytes ? 0 : error_set("trace: out of memory");
}

static BlockTimes time_sum(const BlockTimes *times, int blocks) {
    BlockTimes sum = {0};
    for (int b = 0; b < blocks; b++) {
        sum.forward_ms += times[b].forward_ms;
        sum.input_gradient_ms += times[b].input_gradient_ms;
        sum.weight_gradient_ms += times[b].weight_gradient_ms;
    }
    return sum;
}

/* Runs a step to warm up, then up to eight, fewer if they take long. */
static int run_trace(Bench *bench, Trace *trace) {
    const BenchPace pace = {1, 1, 8, 2000};
    const Setup *setup = &bench->setup;
    const Model *model = setup->model;
    size_t blocks = (size_t)model->blocks;
    double step_ms;
    if (bench_steps(bench, trace->submodel, pace, &step_ms) ||
        memory_blocks(trace->bytes, model, &setup->stage_settings, bench->active))
        return -1;
    memcpy(trace->active, bench->active, blocks * sizeof *trace->active);
    memcpy(trace->times, bench->min_times, blocks * sizeof *trace->times);
    trace->update_ms = bench->min_update_ms;
    trace->sum = time_sum(trace->times, model->blocks);
    trace->passes_ms =
        trace->sum.forward_ms + trace->sum.input_gradient_ms + trace->sum.weight_gradient_ms;
    for (int b = 0; b < model->blocks; b++) {
        trace->total.parameters += trace->bytes[b].parameters;
        trace->total.gradients += trace->bytes[b].gradients;
        trace->total.state += trace->bytes[b].state;
        trace->total.activations += trace->bytes[b].activations;
    }
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

static void print_all(const Setup *setup, const Provenance *here, const Trace *traces, int count) {
    const Options *o = &setup->options;
    const Model *model = setup->model;
    printf("%s: %zu parameters in %d blocks\n", model->name, model->param_count, model->blocks);
    printf("one %s step of %d %s%s, %s, ", optimizer_names[o->optimizer], o->batch,
           model->tokens ? "sequences" : "images",
           o->method == METHOD_OFFLOAD ? ", optimizer in host memory" : "", here->precision);
    if (!setup->device) printf("%d thread%s, ", here->threads, here->threads > 1 ? "s" : "");
    printf("%s\n\n", provenance_computer(here));
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
    Provenance here;
    int failed = run_all(bench, traces, count, first) || setup_provenance(&here, &setup->options) ||
                 trace_write(setup, traces, count);
    if (!failed) print_all(setup, &here, traces, count);
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
