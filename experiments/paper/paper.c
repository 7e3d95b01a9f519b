/* What the experiments cost, memory and timing share: how they end, and medians. */
#include "paper.h"

#include <math.h>
#include <stdlib.h>

#include "../store/rundir.h"
#include "../train/setup.h"

int paper_write(Tables *tables, const CommandLine *line, const char *name, bool failed) {
    const Text dir = rundir_results(line), path = text_of("%s/%s.h5", dir.text, name);
    failed = failed || tables_failed(tables) ||
             setup_provenance(&tables->provenance, &line->options) || rundir_make(dir.text) ||
             tables_write(tables, line, path.text);
    for (int t = 0; t < tables->tables && !failed && !line->options.quiet; t++)
        failed = table_print(stdout, tables->table[t]) != 0;
    if (!failed && !line->options.quiet)
        printf("tables: %s; as a page: bcd report %s\n", path.text, quoted(path.text).text);
    tables_free(tables);
    return failed ? -1 : 0;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double paper_median(double *value, int n) {
    qsort(value, (size_t)n, sizeof *value, compare);
    return (value[(n - 1) / 2] + value[n / 2]) / 2;
}

void timing_take_median(Cell *cell, double *value, int repeats) {
    double mean = 0, squares = 0;
    for (int r = 0; r < repeats; r++) mean += value[r] / repeats;
    for (int r = 0; r < repeats; r++) squares += (value[r] - mean) * (value[r] - mean);
    cell->value = paper_median(value, repeats);
    if (cell->source == SOURCE_MEASURED) cell->spread = sqrt(squares / (repeats - 1));
}
