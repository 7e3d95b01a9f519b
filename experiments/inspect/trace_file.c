/* bcd trace --out: times and bytes of every block as tables, for bcd report and bcd plan --trace;
 * --figure: a drawing of them. */
#include <stdio.h>
#include <stdlib.h>

#include "../report/report.h"
#include "../tables/table.h"
#include "trace.h"

/* The part of a block, then its costs in the order of the file. */
enum { COLUMNS = 1 + COSTS };
static const TableColumn columns[COLUMNS] = {
    {"part", "part", "", COLUMN_TEXT, 0, SOURCE_NONE},
    {"forward", "forward", "ms", COLUMN_NUMBER, 3, SOURCE_MEASURED},
    {"input_gradient", "input gradient", "ms", COLUMN_NUMBER, 3, SOURCE_MEASURED},
    {"weight_gradient", "weight gradient", "ms", COLUMN_NUMBER, 3, SOURCE_MEASURED},
    {"parameters", "parameters", "bytes", COLUMN_NUMBER, 0, SOURCE_CLOSED_FORM},
    {"gradients", "gradients", "bytes", COLUMN_NUMBER, 0, SOURCE_CLOSED_FORM},
    {"state", "state", "bytes", COLUMN_NUMBER, 0, SOURCE_CLOSED_FORM},
    {"activations", "activations", "bytes", COLUMN_NUMBER, 0, SOURCE_CLOSED_FORM},
};

static int add_step(Tables *tables, const Setup *setup, const Trace *trace) {
    const Options *o = &setup->options;
    char name[48], title[160];
    int number = trace->submodel + 1;
    snprintf(name, sizeof name, number ? "submodel_%d" : "full", number);
    snprintf(title, sizeof title, "%.60s, batch %d, %s%.0d: the time and memory of each block",
             setup->model->name, o->batch, number ? "submodel " : "full update", number);
    Table *table = tables_add(tables, name, title, "block", columns, COLUMNS);
    if (!table) return -1;
    for (int b = 0; b < setup->model->blocks; b++) {
        const double *c = trace->cost[b];
        table_row(table, "%s", setup->model->block[b].name);
        table_text(table, 0, SOURCE_NONE, "%s", trace_part(setup->model, trace, b));
        table_put(table, 1, c[COST_FORWARD], c[COST_INPUT_GRADIENT], c[COST_WEIGHT_GRADIENT],
                  c[COST_PARAMETERS], c[COST_GRADIENTS], c[COST_STATE], c[COST_ACTIVATIONS]);
    }
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
             (*figure && page_draw_cycle(&tables, figure) != PYTHON_DONE);
    tables_free(&tables);
    return failed ? -1 : 0;
}
