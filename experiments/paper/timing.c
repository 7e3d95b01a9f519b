/* `bcd experiment timing`: published steps, simulated ones, and repeated measurements here. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../ref/clock.h"
#include "../commands.h"
#include "../study/cases.h"
#include "paper.h"

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

static int measure(Tables *tables, const CommandLine *asked, const MeasuredNetwork *network,
                   int number) {
    return paper_add_shares(tables, asked, network, number) ||
           paper_add_pipelines(tables, asked, network, number) || tables_failed(tables);
}

static void print_repeat(const MeasuredNetwork *network, int done, int repeats, double seconds) {
    printf("%s: %d of %d repeats, about %s left\n", network->model, done, repeats,
           format_time(seconds / done * (repeats - done)).text);
    fflush(stdout);
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
        failed = measure(r ? &more[r] : tables, asked, network, number);
        if (!failed && !asked->options.quiet)
            print_repeat(network, r + 1, repeats, clock_seconds() - start);
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

static int add_measured(Tables *tables, const CommandLine *asked) {
    return measured_for_each(tables, asked, timing_networks(asked->experiment.preset), add_network);
}

int experiment_timing(const CommandLine *line) {
    Tables tables = {0};
    double multiplier;
    bool failed = multiplier_read(&multiplier, line->cost.multiplier);
    if (!failed && isnan(multiplier)) multiplier = paper_average_multiplier;
    if (!failed) {
        paper_add_table3_4(&tables);
        paper_add_table15_16(&tables);
        paper_add_deviations(&tables);
        paper_add_figure4(&tables, multiplier);
        paper_add_figure6(&tables);
    }
    failed = failed || tables_failed(&tables);
    const int status = failed ? -1 : paper_add_figure3(&tables, line);
    failed = status || add_measured(&tables, line);
    failed = paper_write(&tables, line, "timing", failed);
    return status > 0 ? status : failed;
}
