/* bcd trace --out: times and bytes of every block as tables, for bcd report and bcd plan --trace;
 * --figure: a drawing of them. */
#include <stdio.h>
#include <stdlib.h>

#include "../report/report.h"
#include "../tables/table.h"
#include "trace.h"

enum {
    BLOCK_PART,
    FORWARD,
    INPUT_GRADIENT,
    WEIGHT_GRADIENT,
    PARAMETERS,
    GRADIENTS,
    STATE,
    STORED,
    COLUMNS
};

static const TableColumn columns[COLUMNS] = {
    [BLOCK_PART] = {"part", "part", "", COLUMN_TEXT, 0, SOURCE_NONE},
    [FORWARD] = {"forward", "forward", "ms", COLUMN_NUMBER, 3, SOURCE_NONE},
    [INPUT_GRADIENT] = {"input_gradient", "input gradient", "ms", COLUMN_NUMBER, 3, SOURCE_NONE},
    [WEIGHT_GRADIENT] = {"weight_gradient", "weight gradient", "ms", COLUMN_NUMBER, 3, SOURCE_NONE},
    [PARAMETERS] = {"parameters", "parameters", "bytes", COLUMN_NUMBER, 0, SOURCE_NONE},
    [GRADIENTS] = {"gradients", "gradients", "bytes", COLUMN_NUMBER, 0, SOURCE_NONE},
    [STATE] = {"state", "state", "bytes", COLUMN_NUMBER, 0, SOURCE_NONE},
    [STORED] = {"activations", "activations", "bytes", COLUMN_NUMBER, 0, SOURCE_NONE},
};

static void add_block(Table *table, const char *name, const char *part, const BlockTimes *times,
                      const BlockMemory *bytes) {
    table_row(table, "%s", name);
    table_text(table, BLOCK_PART, SOURCE_NONE, "%s", part);
    table_number(table, FORWARD, times->forward_ms, SOURCE_MEASURED);
    table_number(table, INPUT_GRADIENT, times->input_gradient_ms, SOURCE_MEASURED);
    table_number(table, WEIGHT_GRADIENT, times->weight_gradient_ms, SOURCE_MEASURED);
    table_number(table, PARAMETERS, (double)bytes->parameters, SOURCE_CLOSED_FORM);
    table_number(table, GRADIENTS, (double)bytes->gradients, SOURCE_CLOSED_FORM);
    table_number(table, STATE, (double)bytes->state, SOURCE_CLOSED_FORM);
    table_number(table, STORED, (double)bytes->activations, SOURCE_CLOSED_FORM);
}

static int add_step(Tables *tables, const Setup *setup, const Trace *trace) {
    const Options *o = &setup->options;
    char name[48], title[160];
    int number = trace->submodel + 1;
    snprintf(name, sizeof name, number ? "submodel_%d" : "full", number);
    snprintf(title, sizeof title, "%.60s, batch %d, %s%.0d: the time and memory of each block",
             setup->model->name, o->batch, number ? "submodel " : "full update", number);
    Table *table = tables_add(tables, name, title, "block", columns, COLUMNS);
    if (!table) return -1;
    for (int b = 0; b < setup->model->blocks; b++)
        add_block(table, setup->model->block[b].name, trace_part(setup->model, trace, b),
                  &trace->times[b], &trace->bytes[b]);
    table_note(table, "Each time is the shortest of a few steps; the update takes %.3f ms.",
               trace->update_ms);
    return 0;
}

/* Marks the settings that say what was timed as given, so that they are written. */
static Options settings_of(const Setup *setup) {
    static const char *const names[] = {"model", "batch", "precision", "device"};
    Options o = setup->options;
    snprintf(o.model, sizeof o.model, "%s", setup->model->spec);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        o.given[options_find(names[i], o.command)] = true;
    return o;
}

int trace_write(const Setup *setup, const Trace *traces, int count) {
    const char *out = setup->options.out, *figure = setup->options.figure;
    if (!*out && !*figure) return 0;
    Tables tables = {0};
    Options options = settings_of(setup);
    int failed = setup_provenance(&tables.provenance, &setup->options);
    for (int i = 0; i < count && !failed; i++) failed = add_step(&tables, setup, &traces[i]);
    failed = failed || (*out && tables_write(&tables, &options, out)) ||
             (*figure && page_draw_cycle(&tables, figure) != PAGE_WRITTEN);
    tables_free(&tables);
    return failed ? -1 : 0;
}
