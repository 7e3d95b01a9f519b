#include "trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "../commands.h"
#include "../store/provenance.h"
#include "../study/operations.h"

typedef struct {
    Setup setup;
    Batch batch;
    BlockTimes *times; /* the engine fills these at each step */
    double update_ms;
} Tracer;

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

int trace_lowest_active(const Model *model, const bool *active) {
    int b = 0;
    while (b < model->blocks && !active[b]) b++;
    return b;
}

const char *trace_part(const Model *model, const Trace *trace, int block) {
    return trace->active[block]                                ? "active"
           : block < trace_lowest_active(model, trace->active) ? "prefix"
                                                               : "frozen";
}

static double lesser(double a, double b) { return a < b ? a : b; }

/* Keeps the lesser of each time: what disturbs a machine only ever adds. */
static void keep_least(Trace *trace, const Tracer *tracer, bool first) {
    for (int b = 0; b < tracer->setup.model->blocks; b++) {
        BlockTimes *kept = &trace->times[b];
        const BlockTimes *now = &tracer->times[b];
        if (first) *kept = *now;
        kept->forward_ms = lesser(kept->forward_ms, now->forward_ms);
        kept->input_gradient_ms = lesser(kept->input_gradient_ms, now->input_gradient_ms);
        kept->weight_gradient_ms = lesser(kept->weight_gradient_ms, now->weight_gradient_ms);
    }
    trace->update_ms = first ? tracer->update_ms : lesser(trace->update_ms, tracer->update_ms);
}

/* A step to warm up, then a few, or one if it takes long. */
static int measure(Tracer *tracer, Trace *trace) {
    enum { TRIES = 8 };
    const double enough_ms = 2000;
    Engine *engine = tracer->setup.engine;
    double spent_ms = 0;
    for (int i = -1; i < TRIES && (i < 1 || spent_ms < enough_ms); i++) {
        Loss loss;
        if (engine->is->step(engine, &tracer->batch, tracer->setup.options.lr, &loss)) return -1;
        if (i >= 0) keep_least(trace, tracer, i == 0);
        BlockTimes sum = time_sum(tracer->times, tracer->setup.model->blocks);
        spent_ms += sum.forward_ms + sum.input_gradient_ms + sum.weight_gradient_ms;
    }
    trace->sum = time_sum(trace->times, tracer->setup.model->blocks);
    trace->passes_ms =
        trace->sum.forward_ms + trace->sum.input_gradient_ms + trace->sum.weight_gradient_ms;
    return 0;
}

static int run_trace(Tracer *tracer, Trace *trace) {
    Setup *setup = &tracer->setup;
    const Model *model = setup->model;
    if (trace->submodel < 0)
        memset(trace->active, 1, (size_t)model->blocks * sizeof *trace->active);
    else
        partition_active(&setup->bcd.partition, model, trace->submodel, trace->active);
    if (setup->engine->is->activate(setup->engine, trace->active) || measure(tracer, trace) ||
        memory_blocks(trace->bytes, model, &setup->stage_settings, trace->active))
        return -1;
    for (int b = 0; b < model->blocks; b++) {
        trace->total.parameters += trace->bytes[b].parameters;
        trace->total.gradients += trace->bytes[b].gradients;
        trace->total.state += trace->bytes[b].state;
        trace->total.activations += trace->bytes[b].activations;
    }
    trace->all_bytes = (double)setup->engine->is->memory(setup->engine)->total_current;
    return model_operations(&trace->flops, model, trace->active);
}

/* The full update first, then the submodels asked for. */
static int run_all(Tracer *tracer, Trace *traces, int count, int first) {
    for (int i = 0; i < count; i++)
        if (trace_reserve(&traces[i], tracer->setup.model->blocks, i ? first + i - 1 : -1) ||
            run_trace(tracer, &traces[i]))
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
        "         the shapes alone.  Each time is the least of a few steps, after one to warm "
        "up%s.\n",
        setup->device ? ",\n         by the device's own clock" : "");
}

static int prepare(Tracer *tracer, const Options *options) {
    Options asked = *options;
    bool told = options_given(options, "submodels") || *options->partition;
    if (!told && options->method != METHOD_OFFLOAD) asked.submodels = 3;
    Setup *setup = &tracer->setup;
    if (setup_open(setup, &asked)) return -1;
    tracer->times = calloc((size_t)setup->model->blocks, sizeof *tracer->times);
    if (!tracer->times) return error_set("trace: out of memory");
    int n = setup->options.batch, samples = setup->train->samples;
    if (setup_engine(setup, NULL, tracer->times, &tracer->update_ms) ||
        batch_reserve(&tracer->batch, setup->model, n))
        return -1;
    for (int i = 0; i < n; i++) tracer->batch.ids[i] = i % samples;
    tracer->batch.n = n;
    setup->train->fetch(setup->train, &tracer->batch, 0);
    return 0;
}

static int trace_command(Tracer *tracer, const Options *options) {
    if (prepare(tracer, options)) return -1;
    int submodels = tracer->setup.bcd.partition.submodels, first = 0, count = submodels + 1;
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
    int failed =
        run_all(tracer, traces, count, first) || setup_provenance(&here, &tracer->setup.options);
    if (!failed) failed = trace_write(&tracer->setup, traces, count);
    if (!failed) print_all(&tracer->setup, &here, traces, count);
    for (int i = 0; i < count; i++) trace_free(&traces[i]);
    free(traces);
    return failed;
}

int command_trace(const Options *options) {
    Tracer *tracer = calloc(1, sizeof *tracer);
    if (!tracer) return error_set("trace: out of memory");
    int status = trace_command(tracer, options);
    batch_free(&tracer->batch);
    setup_free(&tracer->setup);
    free(tracer->times);
    free(tracer);
    return status;
}
