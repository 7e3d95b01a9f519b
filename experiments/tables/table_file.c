/* Tables as an HDF5 file: see table.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../store/settings.h"
#include "table.h"

enum { VERSION = 1, NOTES = TABLE_NOTES * (TABLE_NOTE + 1) };

const char tables_format[] = "bcd tables";
static const char *const kind_names[] = {"number", "per cent", "deviation", "text"};

/* Finds the unit of the numbers in a column, "" if there is none.  A column's `unit` may be another
 * qualifier, or begin with the unit ("ms by cost"); that of a ratio contains a slash. */
static const char *unit_of(const Table *table, const TableColumn *column) {
    static const char *const units[] = {"us", "ms",  "s",   "h",    "epochs",  "MiB",    "GiB",
                                        "$",  "$/h", "1/s", "GB/s", "GFLOP/s", "TFLOP/s"};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        const size_t length = strlen(units[i]);
        const char behind = strncmp(column->unit, units[i], length) ? '-' : column->unit[length];
        if (!behind || behind == ' ') return units[i];
    }
    bool counted = column->kind == COLUMN_NUMBER && *column->unit && !strchr(column->unit, '/');
    return counted ? table->unit : "";
}

/* The data sets of a column: its numbers or texts, and the names of its sources. */
typedef struct {
    Text source_name;
    H5Column value, source;
} StoredColumn;

/* Describes them; `unit` is NULL where there is none. */
static void store_as(StoredColumn *stored, const TableColumn *column, const char *unit) {
    const bool is_text = column->kind == COLUMN_TEXT;
    stored->source_name = text_of("%s_source", column->name);
    stored->source = (H5Column){.name = stored->source_name.text, .kind = H5_TEXT};
    stored->value = (H5Column){.name = column->name,
                               .kind = is_text ? H5_TEXT : H5_DOUBLE,
                               .offset = is_text ? offsetof(Cell, text) : offsetof(Cell, value),
                               .unit = is_text ? NULL : unit};
}

/* Writes the numbers or texts of a column, and the sources. */
static void write_column(H5File *file, const char *group, const Table *table, int number) {
    const TableColumn *column = &table->column[number];
    const size_t rows = (size_t)table->rows, each = (size_t)table->columns * sizeof(Cell);
    const Cell *cell = table->cell + number;
    const Text path = text_of("%s/%s", group, column->name), scale = text_of("%s/row", group);
    const char *unit = unit_of(table, column);
    StoredColumn stored;
    store_as(&stored, column, *unit ? unit : NULL);
    char(*texts)[H5_NAME] = xcalloc(rows + 1, sizeof *texts);
    for (size_t r = 0; r < rows; r++)
        strcpy(texts[r], source_names[cell[r * (size_t)table->columns].source]);
    h5_write_table(file, group, scale.text, &stored.value, 1, cell, each, rows);
    h5_write_table(file, group, scale.text, &stored.source, 1, texts, sizeof *texts, rows);
    free(texts);
    h5_set_text(file, path.text, "head", column->head);
    if (strcmp(unit, column->unit) != 0) h5_set_text(file, path.text, "below", column->unit);
    h5_set_text(file, path.text, "kind", kind_names[column->kind]);
    h5_set(file, path.text, "decimals", H5_INT, &column->decimals);
    h5_set(file, path.text, "number", H5_INT, &number);
}

static void write_table(H5File *file, const Table *table, int number) {
    char notes[NOTES] = "";
    H5Dim rows = {"row", (size_t)table->rows, NULL};
    const Text path = text_of("/tables/%s", table->name);
    const char *group = path.text;
    for (int n = 0; n < table->notes; n++) {
        if (n) strcat(notes, "\n");
        strcat(notes, table->note[n]);
    }
    h5_write(file, text_of("%s/row", group).text, H5_TEXT, table->label, 1, &rows, NULL);
    h5_set_text(file, group, "title", table->title);
    h5_set_text(file, group, "head", table->row_head);
    h5_set_text(file, group, "notes", notes);
    h5_set_text(file, group, "figure", table->timeline ? "timeline" : "");
    h5_set_text(file, group, "axis", table->timeline ? "ms" : "");
    h5_set(file, group, "number", H5_INT, &number);
    for (int c = 0; c < table->columns; c++) write_column(file, group, table, c);
}

int tables_write(const Tables *tables, const CommandLine *line, const char *path) {
    H5File file;
    if (tables_failed(tables) || h5_create_format(&file, path, tables_format, VERSION)) return -1;
    Provenance provenance = tables->provenance;
    if (provenance.wall == 0) provenance.wall = provenance_seconds();
    h5_set_fields(&file, "/provenance", provenance_fields, PROVENANCE_FIELDS, &provenance);
    settings_write_given(&file, line);
    for (int t = 0; t < tables->tables; t++) write_table(&file, tables->table[t], t);
    return h5_commit(&file);
}
