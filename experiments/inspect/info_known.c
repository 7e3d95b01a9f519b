/* Tables of what the program knows: optimizers, GPUs, flags and data sets. */
#include <math.h>

#include "../../data/data.h"
#include "../../dist/cluster.h"
#include "../train/setup.h"
#include "info.h"

void info_optimizers(Tables *tables) {
    static const TableColumn columns[] = {
        {"matrix_state", "state", "of a matrix", COLUMN_NUMBER, 0, SOURCE_CLOSED_FORM},
        {"other_state", "state", "of others", COLUMN_NUMBER, 0, SOURCE_CLOSED_FORM},
    };
    Table *table = tables_add(tables, "optimizers", "Optimizers", "--optimizer", columns,
                              (int)(sizeof columns / sizeof *columns));
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++) {
        const OptimizerSettings settings = optimizer_defaults((OptimizerKind)kind);
        table_row(table, "%s", optimizer_names[kind]);
        table_put(table, 0, optimizer_state_vectors(&settings, &(Param){.kind = PARAM_MATRIX}),
                  optimizer_state_vectors(&settings, &(Param){.kind = PARAM_VECTOR}));
    }
    table_note(table,
               "state: vectors, k of the closed form, each as long as the parameter.  Embeddings "
               "and the layer of the outputs are no matrices here.  V in a closed form: what is no "
               "matrix, of W.");
}

void info_gpus(Tables *tables) {
    static const TableColumn columns[] = {
        {"name", "name", "", COLUMN_TEXT, 0, SOURCE_NONE},
        {"memory", "memory", "GiB", COLUMN_NUMBER, 1, SOURCE_GIVEN},
        {"bandwidth", "bandwidth", "GB/s", COLUMN_NUMBER, 0, SOURCE_GIVEN},
        {"fp32", "fp32", "TFLOP/s", COLUMN_NUMBER, 1, SOURCE_GIVEN},
        {"tf32", "tf32", "TFLOP/s", COLUMN_NUMBER, 1, SOURCE_GIVEN},
        {"bf16", "bf16", "TFLOP/s", COLUMN_NUMBER, 1, SOURCE_GIVEN},
        {"interconnect", "to a GPU", "GB/s", COLUMN_NUMBER, 1, SOURCE_GIVEN},
        {"host", "to the host", "GB/s", COLUMN_NUMBER, 1, SOURCE_GIVEN},
        {"price", "price", "$/h", COLUMN_NUMBER, 2, SOURCE_PUBLISHED},
    };
    enum { NAME, NUMBERS, COLUMNS = sizeof columns / sizeof *columns };
    Table *table =
        tables_add(tables, "gpus", "GPUs that bcd plan knows", "--gpu", columns, COLUMNS);
    for (const Gpu *gpu = gpu_table; gpu->key; gpu++) {
        table_row(table, "%s", gpu->key);
        table_text(table, NAME, "%s", gpu->name);
        table_put(table, NUMBERS, gpu->memory_bytes / GIB, gpu->memory_rate / 1e9,
                  gpu->flops[PRECISION_FP32] / 1e12, gpu->flops[PRECISION_TF32] / 1e12,
                  gpu->flops[PRECISION_BF16] / 1e12, gpu->interconnect_bandwidth / 1e9,
                  gpu->host_rate / 1e9, gpu->dollars_per_hour > 0 ? gpu->dollars_per_hour : NAN);
        table_note(table, "%s: %s; %s.", gpu->key, gpu->source, gpu->interconnect);
    }
    table_note(table,
               "Rates are peaks: of dense products, the tensor cores' with sums in fp32; one "
               "direction of an interconnect.  Prices are those of the paper's section 4.4.1.");
}

/* Returns the optimizers that take a flag, as in "adam, adamw"; "" of a flag that is no setting of
 * the optimizer. */
static Text optimizers_taking(const Option *option) {
    Text names = {""};
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++) {
        Options options;
        options_defaults(&options, COMMAND_TRAIN);
        options.optimizer = optimizer_defaults((OptimizerKind)kind);
        if (isnan(option_of_optimizer(option, &options.optimizer))) return names;
        if (options_set(&options, option->name, "0.5") || setup_check_optimizer(&options)) continue;
        text_add(&names, "%s%s", *names.text ? ", " : "", optimizer_names[kind]);
    }
    return names;
}

void info_flags(Tables *tables) {
    static const TableColumn columns[] = {
        {"kind", "kind", "", COLUMN_TEXT, 0, SOURCE_NONE},
        {"role", "role", "", COLUMN_TEXT, 0, SOURCE_NONE},
        {"optimizers", "optimizers", "", COLUMN_TEXT, 0, SOURCE_NONE},
    };
    static const char *const kinds[] = {
        [OPTION_IS_TEXT] = "text", [OPTION_IS_INT] = "int",      [OPTION_IS_COUNT] = "count",
        [OPTION_IS_REAL] = "real", [OPTION_IS_BYTES] = "bytes",  [OPTION_IS_CHOICE] = "choice",
        [OPTION_IS_FLAG] = "flag", [OPTION_IS_SWITCH] = "switch"};
    static const char *const roles[] = {
        [OPTION_LOCAL] = "local",   [OPTION_FREE] = "free",       [OPTION_MOVES] = "moves",
        [OPTION_ROUNDS] = "rounds", [OPTION_EXTENDS] = "extends", [OPTION_FIXED] = "fixed"};
    Table *table = tables_add(tables, "flags", "Flags of bcd train", "flag", columns,
                              (int)(sizeof columns / sizeof *columns));
    for (const Option *option = option_table; option->name; option++) {
        if (!(option->commands & COMMAND_TRAIN)) continue;
        table_row(table, "%s", option->name);
        table_text(table, 0, "%s", kinds[option->kind]);
        table_text(table, 1, "%s", roles[option->role]);
        table_text(table, 2, "%s", optimizers_taking(option).text);
    }
}

void info_data(Tables *tables) {
    static const TableColumn columns[] = {
        {"holds", "holds", "", COLUMN_TEXT, 0, SOURCE_NONE},
        {"file", "file", "", COLUMN_TEXT, 0, SOURCE_NONE},
    };
    Table *table = tables_add(tables, "data", "Data sets", "--data", columns,
                              (int)(sizeof columns / sizeof *columns));
    for (const DataSet *set = data_sets; set->name; set++) {
        table_row(table, "%s", set->name);
        table_text(table, 0, set->tokenizer ? "tokens" : "images");
        table_text(table, 1, "%s", set->file ? set->file : "");
    }
}
