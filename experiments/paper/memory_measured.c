/* `bcd experiment memory`, and the peaks that the allocator counts in trainings of a few steps. */
#include <string.h>

#include "../commands.h"
#include "../train/bench.h"
#include "../train/fit.h"
#include "paper.h"

static const MeasuredNetwork smallest[] = {
    {"resnet:depth=8,width=4", "synthetic", "sgd", "16"},
    {"gpt:layers=2,width=32,heads=2,context=32", "text", "adam", "8"},
    {0},
};
static const MeasuredNetwork small[] = {
    {"resnet14", "synthetic", "sgd", "128"},
    {"gpt:layers=12,width=128,heads=4,context=64", "text", "adam", "8"},
    {"llama:layers=12,width=128,heads=4,ffn=344,context=64", "text", "adam", "8"},
    {0},
};
static const MeasuredNetwork published[] = {
    {"resnet14", "synthetic", "sgd", "128"},
    {"resnet50", "synthetic", "sgd", "128"},
    {"gpt2-0.15B:vocabulary=50257", "text", "adam", "1"},
    {0},
};

static const struct {
    int max_submodels;
    const MeasuredNetwork *network;
} presets[PRESET_KINDS] = {[PRESET_SMOKE] = {3, smallest},
                           [PRESET_LAPTOP] = {5, small},
                           [PRESET_GPU] = {5, published},
                           [PRESET_PAPER] = {5, published}};

enum { COLUMNS = 8 };
static const TableColumn columns[COLUMNS] = {
    {"closed_form", "equal parts", "P+G+S", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
    {"trained_plan", "planned", "P+G+S", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
    {"trained", "peak", "P+G+S", COLUMN_NUMBER, 3, SOURCE_MEASURED},
    {"trained_deviation", "off", "", COLUMN_DEVIATION, 1, SOURCE_NONE},
    {"activations", "peak", "activat.", COLUMN_NUMBER, 3, SOURCE_MEASURED},
    {"all_plan", "planned", "all", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
    {"all", "peak", "all", COLUMN_NUMBER, 3, SOURCE_MEASURED},
    {"all_deviation", "off", "", COLUMN_DEVIATION, 1, SOURCE_NONE},
};

static double trained_mib(const size_t *bytes) {
    return (double)(bytes[MEM_PARAMETERS] + bytes[MEM_GRADIENTS] + bytes[MEM_STATE]) / MIB;
}

static int fill_row(Table *table, const Setup *setup) {
    const MemCount *count = setup->engine->is->memory(setup->engine);
    const StageSettings *settings = &setup->stage_settings;
    FitBytes plan;
    int submodels = setup->bcd.partition.submodels;
    if (fit_plan_all(&plan, setup)) return -1;
    double closed =
        memory_closed_form(setup->model, &settings->optimizer, settings->precision, submodels);
    double trained = trained_mib(count->peak), planned = trained_mib(plan.device);
    double all = (double)count->total_peak / MIB;
    double all_planned = (double)plan.device[MEM_ROLES] / MIB;
    table_row(table, submodels > 1 ? "BCD-1/%d" : "full", submodels);
    table_put(table, 0, closed / MIB, planned, trained, trained / planned - 1,
              (double)count->peak[MEM_ACTIVATIONS] / MIB, all_planned, all, all / all_planned - 1);
    return 0;
}

/* Measures a step with each submodel. */
static int add_row(Table *table, const CommandLine *asked, const MeasuredNetwork *network,
                   int submodels) {
    Bench bench = {0};
    Options options;
    int failed = measured_options(&options, &asked->options, network, submodels);
    options.recompute = asked->options.recompute;
    failed = failed || bench_open(&bench, &options, false);
    for (int k = 0; k < submodels && !failed; k++) {
        double ms;
        failed = bench_steps(&bench, k, (BenchPace){.min_steps = 1, .max_steps = 1}, &ms);
    }
    failed = failed || fill_row(table, &bench.setup);
    bench_close(&bench);
    return failed ? -1 : 0;
}

static int add_network(Tables *tables, const CommandLine *asked, const MeasuredNetwork *network,
                       int number) {
    char form[48];
    (void)number;
    Text name = text_of("measured%d", tables->tables);
    Text title = text_of("Measured, MiB: %.80s, %s, batch %s, a step with each submodel",
                         network->model, network->optimizer, network->batch);
    Table *table = tables_add(tables, name.text, title.text, "update", columns, COLUMNS);
    strcpy(table->unit, "MiB");
    for (int m = 1; m <= presets[asked->experiment.preset].max_submodels; m++)
        if (add_row(table, asked, network, m)) return -1;
    OptimizerSettings optimizer =
        optimizer_defaults(strcmp(network->optimizer, "sgd") ? OPTIMIZER_ADAM : OPTIMIZER_SGD);
    table_note(
        table,
        "Peaks of the allocator, in %s on the %s.  \"planned\" is computed from shapes before "
        "the training; \"equal parts\" is the closed form %s, which submodels of whole blocks "
        "reach only when they can be cut evenly.",
        precision_names[asked->options.precision], device_names[asked->options.device],
        memory_closed_form_text(form, &optimizer, (Precision)asked->options.precision, "M"));
    return 0;
}

int experiment_memory(const CommandLine *line) {
    Tables tables = {0};
    paper_add_table8(&tables);
    paper_add_figure5(&tables);
    paper_add_tables9_11(&tables);
    bool failed =
        tables_failed(&tables) ||
        measured_for_each(&tables, line, presets[line->experiment.preset].network, add_network);
    return paper_write(&tables, line, "memory", failed);
}
