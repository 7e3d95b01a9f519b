/* Memory as it is: what the allocator counts in trainings of a few steps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../train/setup.h"
#include "memory.h"

typedef struct {
    const char *model, *data, *optimizer, *batch;
} Network;

static const Network smallest[] = {
    {"resnet:depth=8,width=4", "synthetic", "sgd", "16"},
    {"gpt:layers=2,width=32,heads=2,context=32", "text", "adam", "8"},
    {NULL, NULL, NULL, NULL},
};
static const Network small[] = {
    {"resnet14", "synthetic", "sgd", "128"},
    {"gpt:layers=12,width=128,heads=4,context=64", "text", "adam", "8"},
    {"llama:layers=12,width=128,heads=4,ffn=344,context=64", "text", "adam", "8"},
    {NULL, NULL, NULL, NULL},
};
static const Network published[] = {
    {"resnet14", "synthetic", "sgd", "128"},
    {"resnet50", "synthetic", "sgd", "128"},
    {"gpt2-0.15B:vocabulary=50257", "text", "adam", "1"},
    {NULL, NULL, NULL, NULL},
};

static const struct {
    int most_submodels;
    const Network *network;
} presets[PRESET_KINDS] = {[PRESET_SMOKE] = {3, smallest},
                           [PRESET_LAPTOP] = {5, small},
                           [PRESET_GPU] = {5, published},
                           [PRESET_PAPER] = {5, published}};

enum { CLOSED, TRAINED_PLAN, TRAINED, TRAINED_OFF, ACTIVATIONS, ALL_PLAN, ALL, ALL_OFF, COLUMNS };
static const TableColumn columns[COLUMNS] = {
    [CLOSED] = {"closed_form", "equal parts", "P+G+S", COLUMN_NUMBER, 3},
    [TRAINED_PLAN] = {"trained_plan", "planned", "P+G+S", COLUMN_NUMBER, 3},
    [TRAINED] = {"trained", "peak", "P+G+S", COLUMN_NUMBER, 3},
    [TRAINED_OFF] = {"trained_deviation", "off", "", COLUMN_DEVIATION, 1},
    [ACTIVATIONS] = {"activations", "peak", "activat.", COLUMN_NUMBER, 3},
    [ALL_PLAN] = {"all_plan", "planned", "all", COLUMN_NUMBER, 3},
    [ALL] = {"all", "peak", "all", COLUMN_NUMBER, 3},
    [ALL_OFF] = {"all_deviation", "off", "", COLUMN_DEVIATION, 1},
};

/* A step with each submodel in turn. */
static int train(Setup *setup) {
    const Model *model = setup->model;
    const Partition *partition = &setup->bcd.partition;
    Engine *engine = setup->engine;
    Batch batch = {0};
    bool *active = malloc((size_t)model->blocks * sizeof *active);
    int n = setup->options.batch, failed = batch_reserve(&batch, model, n);
    if (!active) failed = error_set("memory: none left for a training");
    for (int i = 0; i < n && !failed; i++) batch.ids[i] = i % setup->train->samples;
    batch.n = n;
    if (!failed) setup->train->fetch(setup->train, &batch, 0);
    for (int k = 0; k < partition->submodels && !failed; k++) {
        Loss loss;
        partition_active(partition, model, k, active);
        failed = engine->is->activate(engine, active) ||
                 engine->is->step(engine, &batch, setup->options.lr, &loss);
    }
    batch_free(&batch);
    free(active);
    return failed ? -1 : 0;
}

static int fill_row(Table *table, const Setup *setup) {
    const MemCount *count = setup->engine->is->memory(setup->engine);
    const StageSettings *settings = &setup->stage_settings;
    size_t plan[MEM_ROLES + 1], host[MEM_ROLES + 1];
    int submodels = setup->bcd.partition.submodels;
    char method[24] = "full";
    if (setup_memory(plan, host, setup)) return -1;
    if (submodels > 1) snprintf(method, sizeof method, "BCD-1/%d", submodels);
    table_row(table, "%s", method);
    const size_t *peak = count->peak;
    double trained = (double)(peak[MEM_PARAMETERS] + peak[MEM_GRADIENTS] + peak[MEM_STATE]);
    double planned = (double)(plan[MEM_PARAMETERS] + plan[MEM_GRADIENTS] + plan[MEM_STATE]);
    table_number(
        table, CLOSED,
        memory_closed_form(setup->model, &settings->optimizer, settings->precision, submodels) /
            BYTES_MIB,
        SOURCE_CLOSED_FORM);
    table_number(table, TRAINED_PLAN, planned / BYTES_MIB, SOURCE_CLOSED_FORM);
    table_number(table, TRAINED, trained / BYTES_MIB, SOURCE_MEASURED);
    table_number(table, ACTIVATIONS, (double)peak[MEM_ACTIVATIONS] / BYTES_MIB, SOURCE_MEASURED);
    table_number(table, ALL_PLAN, (double)plan[MEM_ROLES] / BYTES_MIB, SOURCE_CLOSED_FORM);
    table_number(table, ALL, (double)count->total_peak / BYTES_MIB, SOURCE_MEASURED);
    table_deviation(table, TRAINED_OFF, TRAINED, TRAINED_PLAN);
    table_deviation(table, ALL_OFF, ALL, ALL_PLAN);
    return 0;
}

static int set_all(Options *o, const Options *asked, const Network *network, int submodels) {
    char number[16];
    snprintf(number, sizeof number, "%d", submodels);
    options_defaults(o, COMMAND_TRAIN);
    o->device = asked->device;
    o->precision = asked->precision;
    o->recompute = asked->recompute;
    return options_set(o, "model", network->model) || options_set(o, "data", network->data) ||
                   options_set(o, "optimizer", network->optimizer) ||
                   options_set(o, "batch", network->batch) || options_set(o, "submodels", number) ||
                   options_set(o, "limit", "256")
               ? -1
               : 0;
}

static int add_row(Table *table, const Options *asked, const Network *network, int submodels) {
    Setup setup = {0};
    Options options;
    int failed = set_all(&options, asked, network, submodels) || setup_open(&setup, &options) ||
                 setup_engine(&setup, NULL, NULL, NULL) || train(&setup) || fill_row(table, &setup);
    setup_free(&setup);
    return failed ? -1 : 0;
}

/* A model of the command line: data and batch as the preset has them for its kind. */
static int find_network(Network *network, int preset, const char *name) {
    Model *model = setup_model(name, 0, 0);
    if (!model) return -1;
    const Network *like = presets[preset].network;
    bool images = !model->tokens;
    while (like[1].model && (strcmp(like->data, "synthetic") == 0) != images) like++;
    *network = *like;
    network->model = name;
    model_free(model);
    return 0;
}

static int add_network(Tables *tables, const Options *options, const Network *network, int most) {
    char name[48], title[160], form[48];
    snprintf(name, sizeof name, "measured%d", tables->tables);
    snprintf(title, sizeof title, "Measured, MiB: %.80s, %s, batch %s, a step with each submodel",
             network->model, network->optimizer, network->batch);
    Table *table = tables_add(tables, name, title, "update", columns, COLUMNS);
    if (!table) return -1;
    strcpy(table->unit, "MiB");
    for (int m = 1; m <= most; m++)
        if (add_row(table, options, network, m)) return -1;
    OptimizerKind kind = strcmp(network->optimizer, "sgd") ? OPTIMIZER_ADAM : OPTIMIZER_SGD;
    OptimizerSettings optimizer = optimizer_defaults(kind);
    table_note(table,
               "The allocator's peaks, in %s on the %s.  \"planned\" is computed from the shapes "
               "before the training; \"equal parts\" is the closed form %s, which submodels of "
               "whole blocks reach only where they can be cut evenly.",
               precision_names[options->precision], device_names[options->device],
               memory_closed_form_text(form, &optimizer, (Precision)options->precision, "M"));
    return 0;
}

int memory_measure(Tables *tables, const Options *options) {
    int most = presets[options->preset].most_submodels;
    char models[OPTION_TEXT];
    snprintf(models, sizeof models, "%s", options->models);
    for (char *name = strtok(models, " "); name; name = strtok(NULL, " ")) {
        Network network;
        if (find_network(&network, options->preset, name) ||
            add_network(tables, options, &network, most))
            return -1;
    }
    for (const Network *n = presets[options->preset].network; !*options->models && n->model; n++)
        if (add_network(tables, options, n, most)) return -1;
    return 0;
}
