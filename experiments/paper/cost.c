/* `bcd experiment cost`, and how such experiments end. */
#include <math.h>
#include <stdlib.h>

#include "../commands.h"
#include "../store/rundir.h"
#include "../study/study_file.h"
#include "../train/setup.h"
#include "paper.h"
#include "trainings.h"

/* Reads --multiplier and --price. */
static int read_settings(CostSettings *settings, const Options *options) {
    *settings = (CostSettings){.multiplier = {[MULTIPLIER_TABLES] = paper_table_multiplier(),
                                              [MULTIPLIER_AVERAGE] = paper_average_multiplier,
                                              [MULTIPLIER_TEXT] = paper_mean_multiplier("adam", 0),
                                              [MULTIPLIER_WORST] = paper_worst_multiplier},
                               .priced = *options->price != 0};
    double *ours = &settings->multiplier[MULTIPLIER_OURS];
    for (int g = 0; g < COST_GPUS; g++)
        if (price_find(&settings->price[g], gpu_find(cost_gpus[g]), options->price)) return -1;
    if (multiplier_read(ours, options->multiplier)) return -1;
    char *end;
    strtod(options->multiplier, &end);
    settings->ours = *end ? SOURCE_MEASURED : SOURCE_GIVEN; /* of files, or a number */
    settings->multipliers = MULTIPLIER_OURS + !isnan(*ours);
    return 0;
}

int paper_write(Tables *tables, const Options *options, const char *name, bool failed) {
    char dir[OPTION_TEXT], path[RUNDIR_PATH], file[64], typed[QUOTED];
    rundir_results(dir, options);
    snprintf(file, sizeof file, "%.50s.h5", name);
    rundir_path(path, dir, file);
    failed = failed || tables_failed(tables) || setup_provenance(&tables->provenance, options) ||
             rundir_make(dir) || tables_write(tables, options, path);
    for (int t = 0; t < tables->tables && !failed && !options->quiet; t++)
        failed = table_print(stdout, tables->table[t]) != 0;
    if (!failed && !options->quiet)
        printf("tables: %s; as a page: bcd report %s\n", path, quoted(typed, path));
    tables_free(tables);
    return failed ? -1 : 0;
}

int experiment_cost(const Options *options) {
    Tables tables = {0};
    CostSettings settings;
    bool failed = read_settings(&settings, options) != 0;
    if (!failed) {
        paper_add_table1(&tables);
        paper_add_reductions(&tables, &settings);
        paper_add_claims(&tables, &settings);
        paper_add_prices(&tables, &settings);
    }
    return paper_write(&tables, options, "cost", failed);
}
