/* `bcd trace`: times a step of every submodel, block by block, next to the full update.  Prints
 * tables, and writes them with --out for bcd report, which draws them, and bcd plan --trace. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../../ref/memory.h"
#include "../base/alloc.h"
#include "../cli/commands.h"
#include "../tables/table.h"
#include "bench.h"
#include "operations.h"
#include "trace_pipeline.h"

/* What a block does and keeps: the columns of its table. */
enum { PART, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, PARAMETERS, GRADIENTS, STATE, ACTIVATIONS };
enum { COLUMNS = ACTIVATIONS + 1 };
static const TableColumn part_column = {"part", "part", "", COLUMN_TEXT, 0, SOURCE_NONE};
static const TableColumn pass_columns[PASSES] = {
    [PASS_FORWARD] = {"forward", "forward", "ms", COLUMN_NUMBER, 2, SOURCE_MEASURED},
    [PASS_INPUT_GRADIENT] = {"input_gradient", "input grad.", "ms", COLUMN_NUMBER, 2,
                             SOURCE_MEASURED},
    [PASS_WEIGHT_GRADIENT] = {"weight_gradient", "weight grad.", "ms", COLUMN_NUMBER, 2,
                              SOURCE_MEASURED},
};

/* A step with one submodel active, or with every block. */
typedef struct {
    double sum[COLUMNS]; /* over the blocks */
    double update_ms;    /* of the optimizer */
    double whole_ms;     /* of the step, with the loss and all that is not in a block */
    double flops;        /* operations of one sample, from the shapes */
    double bytes;        /* of every role, as the allocator counts */
} StepCost;

/* The columns of the table of steps, after those of the passes and after those of the memory. */
static const TableColumn step_columns[] = {
    {"update", "update", "ms", COLUMN_NUMBER, 2, SOURCE_MEASURED},
    {"step", "step", "ms", COLUMN_NUMBER, 2, SOURCE_MEASURED},
    {"whole", "whole", "ms", COLUMN_NUMBER, 2, SOURCE_MEASURED},
    {"step_ratio", "step", "/ full", COLUMN_NUMBER, 2, SOURCE_NONE},
    {"operations_ratio", "operations", "/ full", COLUMN_NUMBER, 2, SOURCE_CLOSED_FORM},
};
static const TableColumn total_columns[] = {
    {"memory", "memory", "MiB", COLUMN_NUMBER, 2, SOURCE_MEASURED},
    {"memory_ratio", "memory", "/ full", COLUMN_NUMBER, 2, SOURCE_NONE},
};

/* Adds the table of the step that `bench` has timed, and its sums to `step`.  Cells are empty where
 * a block does or keeps nothing; a call that has nothing to do takes a microsecond. */
static void add_blocks(Tables *tables, StepCost *step, const Bench *bench, const BlockMemory *bytes,
                       int number) {
    const Setup *setup = &bench->setup;
    const Model *model = setup->model;
    const int lowest = lowest_active(model, bench->active);
    Text name = text_of(number ? "submodel_%d" : "full", number);
    Text title = text_of("%.60s, batch %d, %s%.0d: the time and memory of each block", model->name,
                         setup->options.batch, number ? "submodel " : "full update", number);
    Table *table = tables_add(tables, name.text, title.text, "block", &part_column, 1);
    table_columns(table, pass_columns, PASSES);
    table_memory_columns(table, "bytes", 0);
    for (int b = 0; b < model->blocks; b++) {
        const double *ms = bench->min_times[b].ms;
        const double cost[COLUMNS] = {[FORWARD] = ms[PASS_FORWARD],
                                      [INPUT_GRADIENT] = ms[PASS_INPUT_GRADIENT],
                                      [WEIGHT_GRADIENT] = ms[PASS_WEIGHT_GRADIENT],
                                      [PARAMETERS] = (double)bytes[b].parameters,
                                      [GRADIENTS] = (double)bytes[b].gradients,
                                      [STATE] = (double)bytes[b].state,
                                      [ACTIVATIONS] = (double)bytes[b].activations};
        table_row(table, "%s", model->block[b].name);
        table_text(table, PART, "%s",
                   bench->active[b] ? "active"
                   : b < lowest     ? "prefix"
                                    : "frozen");
        for (int c = FORWARD; c < COLUMNS; c++) {
            step->sum[c] += cost[c];
            table_number(table, c, cost[c] >= 0.005 ? cost[c] : NAN, table->column[c].source);
        }
    }
    table_note(table, "Each time is the shortest of a few steps; the update takes %.3f ms.",
               bench->min_update_ms);
}

/* Runs steps with one submodel active, or all blocks if number is 0.  Overwrites cost[blocks],
 * unless NULL, with the costs of a micro-batch. */
static int trace_step(Tables *tables, StepCost *step, BlockCost *cost, Bench *bench,
                      const TraceFlags *flags, int number) {
    const BenchPace pace = trace_pace(flags, bench->setup.options.cache > 0);
    const Setup *setup = &bench->setup;
    const Model *model = setup->model;
    double step_ms;
    BlockMemory *bytes = xcalloc((size_t)model->blocks, sizeof *bytes);
    int failed = bench_steps(bench, number - 1, pace, &step_ms) ||
                 memory_blocks(bytes, model, &setup->stage_settings, bench->active);
    *step = (StepCost){.update_ms = bench->min_update_ms, .whole_ms = step_ms};
    if (!failed && cost) bench_costs(cost, bench, setup->options.accumulate, step_ms);
    if (!failed) add_blocks(tables, step, bench, bytes, number);
    free(bytes);
    if (failed) return -1;
    step->bytes = (double)engine_memory(setup->engine)->total_current;
    return model_operations(&step->flops, model, bench->active, 0,
                            setup->stage_settings.correct_factor);
}

static void put_step(Table *table, const StepCost *step, const StepCost *full) {
    const double *sum = step->sum;
    double passes_ms = sum[FORWARD] + sum[INPUT_GRADIENT] + sum[WEIGHT_GRADIENT];
    double full_ms = full->sum[FORWARD] + full->sum[INPUT_GRADIENT] + full->sum[WEIGHT_GRADIENT] +
                     full->update_ms;
    table_put(table, 0, sum[FORWARD], sum[INPUT_GRADIENT], sum[WEIGHT_GRADIENT], step->update_ms,
              passes_ms + step->update_ms, step->whole_ms, (passes_ms + step->update_ms) / full_ms,
              step->flops / full->flops, sum[PARAMETERS] / MIB, sum[GRADIENTS] / MIB,
              sum[STATE] / MIB, sum[ACTIVATIONS] / MIB, step->bytes / MIB,
              step->bytes / full->bytes);
}

/* Adds a table of all steps: the full update, step[0], then submodels first, first + 1 ... */
static void add_steps(Tables *tables, const StepCost *step, int count, int first, bool on_device) {
    StepCost mean = {.bytes = 0};
    Table *table = tables_add(tables, "steps", "The steps together", "step", pass_columns, PASSES);
    table_columns(table, step_columns, sizeof step_columns / sizeof *step_columns);
    table_memory_columns(table, "MiB", 2);
    table_columns(table, total_columns, sizeof total_columns / sizeof *total_columns);
    table_row(table, "full update");
    put_step(table, &step[0], &step[0]);
    for (int i = 1; i < count; i++) {
        table_row(table, "submodel %d", first + i - 1);
        put_step(table, &step[i], &step[0]);
        for (int c = FORWARD; c < COLUMNS; c++) mean.sum[c] += step[i].sum[c] / (count - 1);
        mean.update_ms += step[i].update_ms / (count - 1);
        mean.whole_ms += step[i].whole_ms / (count - 1);
        mean.flops += step[i].flops / (count - 1);
        mean.bytes = fmax(mean.bytes, step[i].bytes);
    }
    if (count > 2) {
        table_row(table, "mean, most memory");
        put_step(table, &mean, &step[0]);
    }
    table_note(table, "active: trained, with input gradient, weight gradient, optimizer state.");
    table_note(table, "frozen: only passes the input gradient on to the active blocks below it.");
    table_note(table,
               "prefix: below the lowest active block, forward only; keeps at most its "
               "output, for the next.  A cell is empty where there is nothing to do or to "
               "keep.");
    table_note(table,
               "/ full: this step as a fraction of one that updates everything; operations: "
               "the same from the shapes alone.  whole: with the loss, and all that is in no "
               "block.");
    table_note(table, "Each time is the shortest of a few steps, after one to warm up%s.",
               on_device ? ", by the device's own clock" : "");
    if (on_device)
        table_note(
            table,
            "whole: blocks are timed one by one; a training replays a step as one graph, and "
            "may take less.");
}

/* Times the full update, then the submodels asked for.  Overwrites cost[submodels][blocks], unless
 * NULL, with the costs of a micro-batch. */
static int fill_tables(Tables *tables, BlockCost *cost, Bench *bench, const TraceFlags *flags) {
    const int active = flags->active;
    const Setup *setup = &bench->setup;
    int submodels = setup->bcd.partition.submodels, failed = 0;
    int first = active ? active : 1, count = 1 + (active ? 1 : submodels > 1 ? submodels : 0);
    if (active > submodels)
        return error_set("--active %d: there are %d submodels, counted from 1", active, submodels);
    /* Each has a table, the full update too, and all have one together, a pipeline another. */
    const int most = TABLES_MAX - 2 - (cost != NULL);
    if (count - 1 > most)
        return error_set("trace: it shows at most %d submodels; choose one with --active", most);
    StepCost *step = xcalloc((size_t)count, sizeof *step);
    for (int i = 0; i < count && !failed; i++) {
        const bool kept = cost && (i || submodels == 1);
        BlockCost *own =
            kept ? cost + (size_t)(i ? i - 1 : 0) * (size_t)setup->model->blocks : NULL;
        failed = trace_step(tables, &step[i], own, bench, flags, i ? first + i - 1 : 0);
    }
    if (!failed) add_steps(tables, step, count, first, setup->device);
    free(step);
    return failed;
}

/* Prints all tables but that of the full update, unless there is no submodel. */
static void print_tables(const Tables *tables, const Setup *setup) {
    const Options *o = &setup->options;
    const Model *model = setup->model;
    const Provenance *p = &tables->provenance;
    printf("%s: %zu parameters in %d blocks\n", model->name, model->param_count, model->blocks);
    printf("one %s step of %d %s%s, %s, ", optimizer_names[o->optimizer.kind], o->batch,
           model->tokens ? "sequences" : "images",
           o->method == METHOD_OFFLOAD ? ", optimizer in host memory" : "", p->precision);
    if (!setup->device) printf("%d thread%s, ", p->threads, p->threads > 1 ? "s" : "");
    printf("%s\n\n", provenance_computer(p));
    for (int t = tables->tables > 2; t < tables->tables; t++) table_print(stdout, tables->table[t]);
}

/* Traces one stage, with as many threads as a rank of the pipeline has, on its share of the batch;
 * then the pipeline, which *pipeline is opened for. */
static int trace_both(Tables *tables, Bench *bench, Bench *pipeline, const Options *asked,
                      const TraceFlags *flags) {
    if (bench_open(pipeline, asked, false)) return -1;
    const Setup *whole = &pipeline->setup;
    const int threads = omp_get_max_threads();
    Options options = whole->options;
    strcpy(options.pipeline, "none");
    options.batch = (options.batch + options.replicas - 1) / options.replicas;
    omp_set_num_threads(threads > whole->ranks ? threads / whole->ranks : 1);
    BlockCost *cost = xcalloc((size_t)whole->model->blocks * (size_t)whole->bcd.partition.submodels,
                              sizeof *cost);
    int failed = bench_open(bench, &options, true) || fill_tables(tables, cost, bench, flags);
    omp_set_num_threads(threads);
    failed = failed || trace_pipeline(tables, pipeline, cost, flags);
    strcpy(bench->setup.options.pipeline, asked->pipeline);
    free(cost);
    return failed ? -1 : 0;
}

/* Overwrites *bench with the stage that was traced; it must be closed, also on failure. */
static int trace(Tables *tables, Bench *bench, const Options *asked, const TraceFlags *flags) {
    const bool alone = !strcmp(asked->pipeline, "none");
    Bench pipeline = {0};
    if (!alone && flags->active)
        return error_set("--active %d: with --pipeline all submodels are timed", flags->active);
    int failed = alone ? bench_open(bench, asked, true) || fill_tables(tables, NULL, bench, flags)
                       : trace_both(tables, bench, &pipeline, asked, flags);
    bench_close(&pipeline);
    failed = failed || tables_failed(tables) ||
             setup_provenance(&tables->provenance, &bench->setup.options);
    return failed ? -1 : 0;
}

int command_trace(const CommandLine *asked) {
    CommandLine line = *asked;
    Options *o = &line.options;
    const TraceFlags *flags = &line.options.trace;
    Bench bench = {0};
    Tables tables = {0};
    bool given = options_given(o, "submodels") || *o->partition;
    if (!given && o->method != METHOD_OFFLOAD) o->submodels = 3;
    if (trace_pipeline_check(o)) return -WRONG_USE;
    int failed = trace(&tables, &bench, o, flags);
    if (!failed) {
        *o = bench.setup.options;
        /* What was timed is given now, so that it is written. */
        failed = options_set(o, "model", bench.setup.model->spec) ||
                 options_set(o, "batch", text_of("%d", o->batch).text) ||
                 options_set(o, "precision", precision_names[o->precision]) ||
                 options_set(o, "device", device_names[o->device]) ||
                 (*o->out && tables_write(&tables, &line, o->out));
    }
    if (!failed) print_tables(&tables, &bench.setup);
    tables_free(&tables);
    bench_close(&bench);
    return failed ? -1 : 0;
}
