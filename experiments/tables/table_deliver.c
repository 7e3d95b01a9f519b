#include <stdio.h>

#include "../experiment.h"
#include "../store/rundir.h"
#include "../train/setup.h"
#include "table.h"

int tables_deliver(Tables *tables, const Options *options, const char *name) {
    char dir[OPTION_TEXT], path[RUNDIR_PATH], file[64];
    experiment_dir(dir, options);
    snprintf(file, sizeof file, "%.50s.h5", name);
    rundir_path(path, dir, file);
    if (setup_provenance(&tables->provenance, options) || rundir_make(dir) ||
        tables_write(tables, options, path))
        return -1;
    if (options->quiet) return 0;
    for (int t = 0; t < tables->tables; t++)
        if (table_print(stdout, tables->table[t])) return -1;
    printf("tables: %s; as a page: bcd report %s\n", path, path);
    return 0;
}
