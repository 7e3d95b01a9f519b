/* What the experiments cost, memory and timing share: how they end, medians, and the networks that
 * are measured. */
#include "paper.h"

#include <stdlib.h>
#include <string.h>

#include "../store/rundir.h"
#include "../study/cases.h"
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
    Mean mean = {0};
    for (int r = 0; r < repeats; r++) mean_add(&mean, value[r]);
    cell->value = paper_median(value, repeats);
    if (cell->source == SOURCE_MEASURED) cell->spread = mean_spread(&mean);
}

/* ---- networks that are measured -------------------------------------------------------------- */

int measured_options(Options *o, const Options *asked, const MeasuredNetwork *network,
                     int submodels) {
    options_defaults(o);
    o->device = asked->device;
    o->precision = asked->precision;
    if (options_set_all(o, "model=%s data=%s optimizer=%s batch=%s submodels=%d limit=256",
                        network->model, network->data, network->optimizer, network->batch,
                        submodels))
        return -1;
    return setup_pin(o);
}

static int find_network(MeasuredNetwork *network, const MeasuredNetwork *like, const char *name) {
    Model *model = setup_model(name, 0, 0);
    if (!model) return -1;
    const char *data = model->tokens ? "text" : "synthetic";
    while (like[1].model && strcmp(like->data, data)) like++;
    *network = (MeasuredNetwork){name, data, model->tokens ? "adam" : "sgd", like->batch};
    model_free(model);
    return 0;
}

int measured_for_each(Tables *tables, const CommandLine *asked, const MeasuredNetwork *preset,
                      AddNetwork *add) {
    Text models = text_of("%s", asked->experiment.models);
    int number = 0;
    for (char *name = strtok(models.text, " "); name; name = strtok(NULL, " ")) {
        MeasuredNetwork network;
        if (find_network(&network, preset, name) || add(tables, asked, &network, ++number))
            return -1;
    }
    for (; !*asked->experiment.models && preset->model; preset++)
        if (add(tables, asked, preset, ++number)) return -1;
    return 0;
}
