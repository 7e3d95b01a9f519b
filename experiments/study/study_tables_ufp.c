/* Memory and time of an update against the unfrozen part of the parameters, 1/M: drawn. */
#include <string.h>

#include "study_tables_parts.h"

enum { FIGURES = 4 }; /* cases that are drawn */

/* ---- memory ----------------------------------------------------------------------------------
 */

enum { PARAMETERS, GRADIENTS, STATE, ACTIVATIONS, OTHER, FORM, MEMORY_COLUMNS };

static const TableColumn memory_columns[MEMORY_COLUMNS] = {
    [PARAMETERS] = {"parameters", "parameters", "MiB", COLUMN_NUMBER, 2, SOURCE_NONE},
    [GRADIENTS] = {"gradients", "gradients", "MiB", COLUMN_NUMBER, 2, SOURCE_NONE},
    [STATE] = {"state", "optimizer state", "MiB", COLUMN_NUMBER, 2, SOURCE_NONE},
    [ACTIVATIONS] = {"activations", "activations", "MiB", COLUMN_NUMBER, 2, SOURCE_NONE},
    [OTHER] = {"other", "other", "MiB", COLUMN_NUMBER, 2, SOURCE_NONE},
    [FORM] = {"closed_form", "first three, equal parts", "MiB", COLUMN_NUMBER, 2, SOURCE_NONE},
};

static double peak_mib(const StudyRow *row, MemRole role) { return row->peak[role] / MIB; }

static void put_memory(Table *table, const StudyRow *row) {
    table_number(table, PARAMETERS, peak_mib(row, MEM_PARAMETERS), SOURCE_MEASURED);
    table_number(table, GRADIENTS, peak_mib(row, MEM_GRADIENTS), SOURCE_MEASURED);
    table_number(table, STATE, peak_mib(row, MEM_STATE), SOURCE_MEASURED);
    table_number(table, ACTIVATIONS, peak_mib(row, MEM_ACTIVATIONS), SOURCE_MEASURED);
    table_number(
        table, OTHER,
        peak_mib(row, MEM_BUFFERS) + peak_mib(row, MEM_CACHE) + peak_mib(row, MEM_WORKSPACE),
        SOURCE_MEASURED);
    table_number(table, FORM, row->closed_form / MIB, SOURCE_CLOSED_FORM);
}

/* ---- time ------------------------------------------------------------------------------------
 */

enum { TIME, OPERATIONS, TIME_COLUMNS };

static const TableColumn time_columns[TIME_COLUMNS] = {
    [TIME] = {"time", "measured", "/ full", COLUMN_NUMBER, 3, SOURCE_NONE},
    [OPERATIONS] = {"operations", "operations", "/ full", COLUMN_NUMBER, 3, SOURCE_NONE},
};

static void put_time(Table *table, const Cases *cases, const Case *item, const CaseMethod *method) {
    Mean time = {0}, operations = {0};
    for (int s = 0; s < method->seeds; s++) {
        const StudyRow *row = &cases->study->row[method->row[s]];
        const StudyRow *full = case_partner(cases, item, row);
        if (!full) continue;
        mean_add(&time, study_time_ratio(row, full));
        mean_add(&operations,
                 study_per_update(row, AXIS_OPERATIONS) / study_per_update(full, AXIS_OPERATIONS));
    }
    if (case_first(cases, method)->submodels == 1)
        table_number(table, TIME, 1, SOURCE_MEASURED);
    else
        study_put_mean(table, TIME, &time, SOURCE_MEASURED);
    table_number(table, OPERATIONS, mean_value(&operations), SOURCE_CLOSED_FORM);
}

/* ---- both ------------------------------------------------------------------------------------
 */

/* The first way to train with each M on all of the data; the offloading full update is none. */
static bool is_drawn(const Cases *cases, const Case *item, int method) {
    const StudyRow *row = case_first(cases, &item->method[method]);
    if (row->fraction < 1 || !strcmp(row->method, "offload")) return false;
    return case_is_plain(cases, item, &item->method[method]);
}

static int count_drawn(const Cases *cases, const Case *item) {
    int count = 0;
    for (int m = 0; m < item->methods; m++) count += is_drawn(cases, item, m);
    return count;
}

static Table *add(Tables *tables, const char *kind, int number, const char *title,
                  const TableColumn *columns, int count, FigureShape shape, const char *axis) {
    char name[48];
    snprintf(name, sizeof name, "ufp_%s_%d", kind, number);
    Table *table = tables_add(tables, name, title, "unfrozen part", columns, count);
    if (!table) return NULL;
    table->figure = shape;
    snprintf(table->axis, sizeof table->axis, "%s", axis);
    return table;
}

static int add_case(Tables *tables, const Cases *cases, const Case *item, int number) {
    char name[CASE_NAME], title[160];
    case_name(case_first(cases, &item->method[0]), name);
    snprintf(title, sizeof title, "Peak memory by role against the unfrozen part: %.100s", name);
    Table *memory = add(tables, "memory", number, title, memory_columns, MEMORY_COLUMNS,
                        FIGURE_STACKED, "MiB at the peak");
    snprintf(title, sizeof title, "Time of an update against the unfrozen part: %.100s", name);
    Table *time = memory ? add(tables, "time", number, title, time_columns, TIME_COLUMNS,
                               FIGURE_LINES, "an update over a full one")
                         : NULL;
    if (!time) return -1;
    for (int m = 0; m < item->methods; m++) {
        if (!is_drawn(cases, item, m)) continue;
        const StudyRow *row = case_first(cases, &item->method[m]);
        table_row(memory, row->submodels == 1 ? "1" : "1/%d", (int)row->submodels);
        put_memory(memory, row);
        table_row(time, row->submodels == 1 ? "1" : "1/%d", (int)row->submodels);
        put_time(time, cases, item, &item->method[m]);
    }
    table_note(memory,
               "Peaks of each role, which need not come at the same time.  The closed form "
               "is of parameters, gradients and optimizer state, in submodels of equal "
               "size.");
    table_note(time,
               "Means over all updates and seeds, each over the full update of the same "
               "seed; operations counted from shapes, nothing cached.");
    return 0;
}

int study_add_ufp(Tables *tables, const Cases *cases) {
    int drawn = 0;
    for (int c = 0; c < cases->cases && drawn < FIGURES; c++)
        if (count_drawn(cases, &cases->item[c]) > 2 &&
            add_case(tables, cases, &cases->item[c], ++drawn))
            return -1;
    return 0;
}
