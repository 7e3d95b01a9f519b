/* `bcd info`: this build, and what models cost with and without BCD. */
#include "info.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "../../ref/memory.h"
#include "../base/alloc.h"
#include "../cli/commands.h"
#include "../store/provenance.h"
#include "../tables/table.h"
#include "../train/fit.h"
#include "../train/setup.h"
#include "operations.h"

enum { MAX_SUBMODELS = 5 };

static void print_build(void) {
    Provenance p;
    provenance_fill(&p, 0);
    unsigned version[3];
    h5_version(version);
    printf("commit     %s\ncompiler   %s\nflags      %s\nHDF5       %u.%u.%u\n", p.commit,
           p.compiler, p.flags, version[0], version[1], version[2]);
    printf("threads    %d\n", p.threads);
    printf("cpu        %s, fp32\n", p.cpu);
    printf("plain      the same processor, with the textbook loops of ref/ops\n");
    for (int device = DEVICE_CUDA; device < DEVICE_KINDS; device++) {
        DeviceInfo info;
        const DeviceModule *module = device_module_open(device_names[device]);
        printf("%-10s ", device_names[device]);
        if (!module || module->info(&info)) {
            printf("not available: %s\n", error_message());
            continue;
        }
        printf("%s, %s", info.name, format_bytes((double)info.memory_bytes).text);
        if (*info.runtime) printf(", %s", info.runtime);
        if (*info.driver) printf(", %s", info.driver);
        if (*info.libraries) printf(", %s", info.libraries);
        printf("\n");
    }
}

/* ---- the known models ------------------------------------------------------------------------ */

/* Adds a table of all presets: the closed form for ordinary training and for BCD. */
static int add_presets(Tables *tables, OptimizerKind kind, Precision precision) {
    static const TableColumn columns[] = {
        {"parameters", "parameters", "", COLUMN_NUMBER, 0, SOURCE_CLOSED_FORM},
        {"unit", "unit", "", COLUMN_TEXT, 0, SOURCE_NONE},
        {"full", "full", "", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
        {"bcd2", "BCD-1/2", "", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
        {"bcd3", "BCD-1/3", "", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
        {"bcd4", "BCD-1/4", "", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
        {"bcd5", "BCD-1/5", "", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
    };
    enum { UNIT = 1, FULL };
    char form[48];
    const OptimizerSettings optimizer = optimizer_defaults(kind);
    Text title = text_of("Parameters, gradients and state, %s in %s: %s", optimizer_names[kind],
                         precision_names[precision],
                         memory_closed_form_text(form, &optimizer, precision, "M"));
    Table *table = tables_add(tables, text_of("presets_%s", optimizer_names[kind]).text, title.text,
                              "model", columns, FULL + MAX_SUBMODELS);
    for (const Preset *preset = model_presets; preset->name; preset++) {
        Model *model = model_create(preset->name);
        if (!model) return -1;
        const bool large = memory_closed_form(model, &optimizer, precision, 1) >= 100 * MIB;
        table_row(table, "%s", preset->name);
        table_put(table, 0, (double)model->param_count);
        table_text(table, UNIT, large ? "GiB" : "MiB");
        for (int m = 1; m <= MAX_SUBMODELS; m++)
            table_put(table, FULL + m - 1,
                      memory_closed_form(model, &optimizer, precision, m) / (large ? GIB : MIB));
        model_free(model);
    }
    return 0;
}

/* ---- one model ------------------------------------------------------------------------------- */

static void add_block(Table *table, const Model *model, int number) {
    const Block *block = &model->block[number];
    const Shape out = model->value[block->out].shape;
    double flops = 0;
    Text ops = {""};
    for (int n = block->first_node; n < block->end_node; n++) {
        flops += node_flops(&model->node[n], PASS_FORWARD);
        text_add(&ops, "%s%s", *ops.text ? " " : "", op_name(model->node[n].kind));
    }
    table_row(table, "%s", block->name);
    table_put(table, 0, number, (double)block_params(model, number));
    table_text(table, 2, "%d x %d x %d", out.h, out.w, out.c);
    table_put(table, 3, flops);
    table_text(table, 4, "%s", ops.text);
}

static void add_blocks(Tables *tables, const Model *model) {
    static const TableColumn columns[] = {
        {"block", "#", "", COLUMN_NUMBER, 0, SOURCE_NONE},
        {"parameters", "parameters", "", COLUMN_NUMBER, 0, SOURCE_CLOSED_FORM},
        {"output", "output", "", COLUMN_TEXT, 0, SOURCE_NONE},
        {"operations", "forward FLOP", "of a sample", COLUMN_NUMBER, 0, SOURCE_CLOSED_FORM},
        {"ops", "ops", "", COLUMN_TEXT, 0, SOURCE_NONE},
    };
    const bool same = strcmp(model->name, model->spec) == 0;
    Text title = text_of("%.40s%s%s: %zu parameters in %d blocks", same ? "" : model->name,
                         same ? "" : " = ", model->spec, model->param_count, model->blocks);
    Table *table = tables_add(tables, "blocks", title.text, "block", columns,
                              (int)(sizeof columns / sizeof *columns));
    for (int b = 0; b < model->blocks; b++) add_block(table, model, b);
}

/* Adds a row with the plan of the largest of the submodels that the options ask for. */
static int add_plan(Table *table, Model *model, const Options *options) {
    FitBytes bytes;
    Setup setup = {.model = model,
                   .stage_settings = {.batch = options->batch,
                                      .precision = (Precision)options->precision,
                                      .recompute = options->recompute,
                                      .correct_factor = options->correct_above,
                                      .optimizer = options->optimizer}};
    Partition *partition = &setup.bcd.partition;
    if (setup_partition(partition, model, options)) return -1;
    const int failed = fit_plan(&bytes, &setup, 0), submodels = partition->submodels;
    const double parts = 1 / partition_share(partition, model);
    partition_free(partition);
    if (failed) return -1;
    const size_t *device = bytes.device;
    const OptimizerSettings *optimizer = &setup.stage_settings.optimizer;
    table_row(table, submodels > 1 ? "%s BCD-1/%d" : "%s full", optimizer_names[optimizer->kind],
              submodels);
    table_put(table, 0,
              memory_closed_form(model, optimizer, setup.stage_settings.precision, parts) / MIB,
              (double)(device[MEM_PARAMETERS] + device[MEM_GRADIENTS] + device[MEM_STATE]) / MIB,
              (double)device[MEM_PARAMETERS] / MIB, (double)device[MEM_GRADIENTS] / MIB,
              (double)device[MEM_STATE] / MIB, (double)device[MEM_ACTIVATIONS] / MIB,
              (double)device[MEM_ROLES] / MIB);
    return 0;
}

/* The number of submodels that is listed after m: up to MAX_SUBMODELS each, then powers of two, and
 * the one that was asked for. */
static int next_submodels(int m, int asked) {
    int next = 1;
    while (next <= m) next *= 2;
    if (m < MAX_SUBMODELS) next = m + 1;
    return asked > m && asked < next ? asked : next;
}

/* Overwrites *submodels with the most that the options allow: a block each. */
static int most_submodels(int *submodels, const Model *model, const Options *options) {
    Options whole = *options;
    Partition partition;
    whole.submodels = 1;
    if (setup_partition(&partition, model, &whole)) return -1;
    *submodels = 0;
    for (int b = 0; b < model->blocks; b++) *submodels += partition.of_block[b] >= 0;
    partition_free(&partition);
    return 0;
}

/* Adds the rows of an optimizer: ordinary training, and more and more submodels, down to a block
 * each; or those of --partition. */
static int add_plans(Table *table, Model *model, const Options *asked) {
    Options options = *asked;
    int most;
    options.submodels = 1;
    options.correct_above = 0;
    *options.partition = *options.always_active = '\0';
    if (add_plan(table, model, &options)) return -1;
    options = *asked;
    if (*asked->partition) return add_plan(table, model, asked);
    if (most_submodels(&most, model, asked)) return -1;
    for (int m = 2; m <= most; m = next_submodels(m, asked->submodels)) {
        options.submodels = m;
        if (add_plan(table, model, &options)) return -1;
    }
    return 0;
}

/* Adds the memory with each optimizer asked for, or with sgd and adam. */
static int add_memory(Tables *tables, Model *model, const Options *asked) {
    static const TableColumn sums[] = {
        {"equal_parts", "equal parts", "P+G+S", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
        {"trained", "planned", "P+G+S", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
    };
    static const TableColumn all = {"all", "all", "MiB", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM};
    const bool given = options_given(asked, "optimizer");
    Text title = text_of("Memory in MiB, %s, batch %d%s", precision_names[asked->precision],
                         asked->batch, asked->recompute ? ", activations recomputed" : "");
    if (model->tokens) text_add(&title, ", sequences of %d tokens", model->input.w);
    if (*asked->always_active) text_add(&title, ", always active: %.60s", asked->always_active);
    if (options_given(asked, "momentum"))
        text_add(&title, ", momentum %g", asked->optimizer.momentum);
    Table *table =
        tables_add(tables, "memory", title.text, "update", sums, (int)(sizeof sums / sizeof *sums));
    table_memory_columns(table, "MiB", 3);
    table_columns(table, &all, 1);
    strcpy(table->unit, "MiB");
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++) {
        Options options = *asked;
        options.optimizer = optimizer_defaults((OptimizerKind)kind);
        if (given ? kind != (int)asked->optimizer.kind : kind > OPTIMIZER_ADAM) continue;
        if (options_given(asked, "momentum"))
            options.optimizer.momentum = asked->optimizer.momentum;
        if (add_plans(table, model, &options)) return -1;
    }
    table_note(table,
               "equal parts: the closed form of parameters, gradients and state, for submodels of "
               "equal size, and what is always active.  The rest is planned from the shapes, with "
               "the largest of balanced "
               "submodels of whole blocks; each column has its own largest, and \"all\" has "
               "workspace too.");
    return 0;
}

/* Adds a row for each submodel: what a step that trains it computes. */
static int add_submodels(Tables *tables, const Model *model, const Options *asked) {
    static const TableColumn columns[] = {
        {"parameters", "parameters", "", COLUMN_NUMBER, 0, SOURCE_CLOSED_FORM},
        {"operations", "FLOP of a step", "of a sample", COLUMN_NUMBER, 0, SOURCE_CLOSED_FORM},
    };
    Options options = *asked;
    Partition partition;
    if (!options_given(asked, "submodels") && !*asked->partition)
        options.submodels = model->blocks < 3 ? model->blocks : 3;
    if (setup_partition(&partition, model, &options)) return -1;
    bool *active = xcalloc((size_t)model->blocks, sizeof *active);
    Table *table = tables_add(tables, "submodels", "A step that trains one submodel", "submodel",
                              columns, (int)(sizeof columns / sizeof *columns));
    int failed = 0;
    for (int m = 0; m < partition.submodels && !failed; m++) {
        double operations;
        partition_active(&partition, model, m, active);
        failed = model_operations(&operations, model, active, 0, options.correct_above);
        table_row(table, "%d", m + 1);
        table_put(table, 0, (double)(partition.params[m] + partition.always_params), operations);
    }
    table_note(table,
               "Operations: two for a multiply-add; forward of all blocks, input gradients down to "
               "the lowest active parameter, weight gradients of the active blocks.  With "
               "--submodels 1 it is the full update.");
    free(active);
    partition_free(&partition);
    return failed;
}

/* Refuses flags that say how a model is trained where none is given. */
static int check_without_model(const Options *options) {
    static const char *const flags[] = {"batch",         "optimizer", "momentum",
                                        "context",       "submodels", "partition",
                                        "always-active", "recompute", "correct-above"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (options_given(options, flags[i]))
            return error_set("--%s goes with --model or --init", flags[i]);
    return 0;
}

/* Refuses a momentum for optimizers that are not named, or have none. */
static int check_momentum(const Options *options) {
    if (options_given(options, "momentum") && !options_given(options, "optimizer"))
        return error_set("--momentum goes with --optimizer");
    return setup_check_optimizer(options);
}

int command_info(const CommandLine *line) {
    const Options *options = &line->options;
    const Precision precision = (Precision)options->precision;
    Tables tables = {0};
    Model *model = *options->model ? setup_model(options->model, 0, options->context) : NULL;
    if (!model && (*options->model || check_without_model(options))) return -WRONG_USE;
    if (check_momentum(options)) {
        model_free(model);
        return -WRONG_USE;
    }
    print_build();
    printf("\n");
    provenance_fill(&tables.provenance, 0);
    int failed;
    if (model) {
        add_blocks(&tables, model);
        failed = add_memory(&tables, model, options) || add_submodels(&tables, model, options);
    } else {
        failed = add_presets(&tables, OPTIMIZER_SGD, precision) ||
                 add_presets(&tables, OPTIMIZER_ADAM, precision);
        info_optimizers(&tables);
        info_gpus(&tables);
    }
    model_free(model);
    for (int t = 0; t < tables.tables && !failed; t++)
        failed = table_print(stdout, tables.table[t]);
    if (!failed && *options->out) {
        if (!*options->model) {
            info_flags(&tables);
            info_data(&tables);
        }
        failed = tables_write(&tables, line, options->out);
    }
    if (!failed && !*options->model)
        printf(
            "bcd info --model SPEC shows the blocks of one, or of a free shape such as\n"
            "gpt:layers=6,width=384,heads=6,context=256 or resnet:depth=32\n");
    tables_free(&tables);
    return failed ? -1 : 0;
}
