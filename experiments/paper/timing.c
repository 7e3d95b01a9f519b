/* `bcd experiment timing`: published steps, simulated ones, and repeated measurements here. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../ref/base/clock.h"
#include "../commands.h"
#include "../study/cases.h"
#include "paper.h"

/* ---- how far the simulator is off ------------------------------------------------------------ */

/* Published cells that the simulator was not calibrated with. */
static const struct {
    const char *label, *table, *prefix; /* of the models' names */
} sets[] = {{"Table 4 and section 4.4.2", "table4", ""},
            {"of these LLaMA alone", "table4", "L-"},
            {"Table 3", "table3", ""},
            {"Tables 15 and 16", "tables15and16", ""}};

/* table_find does not do, because two rows of Table 4 have the same label. */
static const Cell *cell(const Table *table, int row, const char *column) {
    int c = 0;
    while (strcmp(table->column[c].name, column)) c++;
    return &table->cell[row * table->columns + c];
}

static void add_deviations(Tables *tables) {
    static const TableColumn columns[] = {
        {"cells", "cells", "", COLUMN_NUMBER, 0, SOURCE_NONE},
        {"roofline", "roofline", "", COLUMN_PERCENT, 1, SOURCE_SIMULATED},
        {"calibrated", "calibrated", "", COLUMN_PERCENT, 1, SOURCE_SIMULATED},
    };
    Table *summary = tables_add(tables, "deviations", "How far the simulated steps are off",
                                "published in", columns, 3);
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        const Table *table = tables_find(tables, sets[s].table);
        double roofline = 0, calibrated = 0;
        int cells = 0;
        for (int r = 0; table && r < table->rows; r++) {
            double off = cell(table, r, "calibrated_deviation")->value;
            if (strncmp(table->label[r], sets[s].prefix, strlen(sets[s].prefix)) || isnan(off) ||
                cell(table, r, "calibrated")->source != SOURCE_SIMULATED)
                continue;
            cells++;
            calibrated += fabs(off);
            roofline += fabs(cell(table, r, "roofline_deviation")->value);
        }
        table_row(summary, "%s", sets[s].label);
        table_put(summary, 0, cells, roofline / cells, calibrated / cells);
    }
    table_note(summary,
               "Means of absolute deviations over the cells that nothing was calibrated with.");
}

/* ---- measured here --------------------------------------------------------------------------- */

enum { SMOKE_REPEATS = 2, REPEATS = 5 };

static void note_repeats(Table *table, int repeats) {
    double off = 0;
    int last = table->columns - 1;
    for (int r = 0; r < table->rows; r++)
        off += fabs(table->cell[r * table->columns + last].value) / table->rows;
    table_note(
        table,
        "Each number is the median of %d measurements, with their standard deviation.  The "
        "whole table is measured before it is repeated; a measurement is the fastest of a few "
        "steps.",
        repeats);
    if (table->column[last].kind == COLUMN_DEVIATION)
        table_note(table, "Mean absolute deviation %.1f %%.", 100 * off);
}

/* Adds the tables of a network.  All of them are measured in each repeat, so that a disturbance of
 * the machine affects one repeat, and both sides of a comparison in it. */
static int add_network(Tables *tables, const CommandLine *asked, const MeasuredNetwork *network,
                       int number) {
    Tables more[REPEATS] = {{.tables = 0}};
    int repeats = asked->experiment.preset == PRESET_SMOKE ? SMOKE_REPEATS : REPEATS;
    int first = tables->tables, failed = 0;
    double start = clock_seconds();
    for (int r = 0; r < repeats && !failed; r++) {
        Tables *now = r ? &more[r] : tables;
        failed = paper_add_shares(now, asked, network, number) ||
                 paper_add_pipelines(now, asked, network, number) || tables_failed(now);
        double left = (clock_seconds() - start) / (r + 1) * (repeats - r - 1);
        if (!failed && !asked->options.quiet)
            printf("%s: %d of %d repeats, about %s left\n", network->model, r + 1, repeats,
                   format_time(left).text);
        fflush(stdout);
    }
    for (int t = first; t < tables->tables && !failed; t++) {
        Table *table = tables->table[t];
        for (int i = 0; i < table->rows * table->columns; i++) {
            double value[REPEATS] = {table->cell[i].value};
            for (int r = 1; r < repeats; r++) value[r] = more[r].table[t - first]->cell[i].value;
            timing_take_median(&table->cell[i], value, repeats);
        }
        note_repeats(table, repeats);
    }
    for (int r = 1; r < repeats; r++) tables_free(&more[r]);
    return failed;
}

void paper_add_timing(Tables *tables, double multiplier) {
    paper_add_table3_4(tables);
    paper_add_table15_16(tables);
    add_deviations(tables);
    paper_add_figure4(tables, multiplier);
    paper_add_figure6(tables);
}

int experiment_timing(const CommandLine *line) {
    Tables tables = {0};
    double multiplier;
    int status = multiplier_read(&multiplier, line->cost.multiplier);
    if (!status) {
        paper_add_timing(&tables, isnan(multiplier) ? paper_average_multiplier : multiplier);
        status = tables_failed(&tables) ? -1 : paper_add_figure3(&tables, line);
    }
    bool failed =
        status ||
        measured_for_each(&tables, line, timing_networks(line->experiment.preset), add_network);
    failed = paper_write(&tables, line, "timing", failed);
    return status > 0 ? status : -failed;
}
