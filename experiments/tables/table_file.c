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
static const char *const shape_names[FIGURE_SHAPES] = {"", "lines", "bars", "timeline"};

/* ---- writing --------------------------------------------------------------------------------- */

/* Finds the unit of the numbers in a column, "" if there is none.  A column's `unit` may be another
 * qualifier, or begin with the unit ("ms by cost"); that of a ratio contains a slash. */
static const char *unit_of(const Table *table, const TableColumn *column) {
    static const char *const units[] = {"ms", "s",   "h",      "bytes", "MiB",     "GiB",
                                        "$",  "$/h", "points", "1/s",   "updates", "ms/1k tok."};
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
    h5_set_text(file, group, "figure", shape_names[table->figure]);
    h5_set_text(file, group, "axis", table->axis);
    h5_set(file, group, "number", H5_INT, &number);
    for (int c = 0; c < table->columns; c++) write_column(file, group, table, c);
}

int tables_write(const Tables *tables, const CommandLine *line, const char *path) {
    H5File file;
    if (tables_failed(tables) || h5_check_replaced(path, tables_format) ||
        h5_create_format(&file, path, tables_format, VERSION))
        return -1;
    Provenance provenance = tables->provenance;
    if (provenance.wall == 0) provenance.wall = provenance_seconds();
    h5_set_fields(&file, "/provenance", provenance_fields, PROVENANCE_FIELDS, &provenance);
    settings_write_given(&file, line);
    for (int t = 0; t < tables->tables; t++) write_table(&file, tables->table[t], t);
    return h5_commit(&file);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int find_name(const char *name, const char *const *names, int count) {
    for (int i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0) return i;
    return -1;
}

static int damaged(const H5File *file, const char *object) {
    return error_set("%s: %s: not in the format of this program", file->path, object);
}

/* The unit is printed below the head, unless the attribute `below` has another text. */
static int read_column_head(const H5File *file, const char *path, TableColumn *column) {
    char kind[24];
    const char *below = h5_has(file, path, "below") ? "below" : "unit";
    if (h5_get_text(file, path, "head", column->head, sizeof column->head) ||
        h5_get_text(file, path, "kind", kind, sizeof kind) ||
        h5_get(file, path, "decimals", H5_INT, &column->decimals) ||
        (h5_has(file, path, below) &&
         h5_get_text(file, path, below, column->unit, sizeof column->unit)))
        return -1;
    int known = find_name(kind, kind_names, COLUMN_TEXT + 1);
    if (known < 0 || column->decimals < DECIMALS_FREE || column->decimals > 20)
        return damaged(file, path);
    column->kind = (ColumnKind)known;
    return 0;
}

/* Finds the data sets and groups with an attribute `number` in a group, and orders their names by
 * it.  Returns how many they are; -1 and an error when the numbers are not 0, 1, ... */
static int read_names(const H5File *file, const char *group, int max, char (*name)[H5_NAME]) {
    int links = h5_count(file, group), count = 0;
    for (int i = 0; i < max; i++) *name[i] = 0;
    for (int i = 0; i < links; i++) {
        char found[H5_NAME];
        int number;
        if (h5_name(file, group, i, found)) return -1;
        const Text path = text_of("%s/%s", group, found);
        if (!h5_has(file, path.text, "number")) continue;
        if (h5_get(file, path.text, "number", H5_INT, &number)) return -1;
        if (number < 0 || number >= max || *name[number] || strlen(found) >= TABLE_NAME)
            return damaged(file, path.text);
        strcpy(name[number], found);
        count++;
    }
    for (int i = 0; i < count; i++)
        if (!*name[i]) return damaged(file, group);
    return links < 0 ? -1 : count;
}

/* Reads the heads of the columns: the data sets with a number. */
static int read_heads(const H5File *file, const char *group, Table *table) {
    char name[TABLE_COLUMNS][H5_NAME];
    const int columns = read_names(file, group, TABLE_COLUMNS, name);
    for (int c = 0; c < columns; c++, table->columns++) {
        strcpy(table->column[c].name, name[c]);
        if (read_column_head(file, text_of("%s/%s", group, name[c]).text, &table->column[c]))
            return -1;
    }
    return columns < 0 ? -1 : 0;
}

static int read_cells(const H5File *file, const char *group, Table *table, int number) {
    const size_t rows = (size_t)table->rows, columns = (size_t)table->columns;
    StoredColumn stored;
    store_as(&stored, &table->column[number], NULL);
    char(*texts)[H5_NAME] = xcalloc(rows + 1, sizeof *texts);
    Cell *cell = table->cell + number;
    int failed =
        h5_read_columns(file, group, &stored.value, 1, cell, columns * sizeof *cell, rows) ||
        h5_read_columns(file, group, &stored.source, 1, texts, sizeof *texts, rows);
    for (size_t r = 0; r < rows && !failed; r++) {
        int known = find_name(texts[r], source_names, SOURCES);
        if (known < 0) failed = damaged(file, stored.source_name.text);
        cell[r * columns].source = (Source)known;
    }
    free(texts);
    return failed;
}

/* Reads the labels and makes empty cells. */
static int read_rows(const H5File *file, const char *group, Table *table) {
    static const H5Column column = {.name = "row", .kind = H5_TEXT};
    size_t rows;
    char(*label)[H5_NAME] = h5_read_table(file, group, &column, 1, sizeof *label, &rows);
    if (!label) return -1;
    int failed = rows > 1000000 ? damaged(file, group) : 0;
    for (size_t r = 0; r < rows && !failed; r++) table_row(table, "%s", label[r]);
    free(label);
    return failed;
}

static int read_notes(const H5File *file, const char *group, Table *table) {
    char notes[NOTES];
    if (h5_get_text(file, group, "notes", notes, sizeof notes)) return -1;
    for (char *note = strtok(notes, "\n"); note; note = strtok(NULL, "\n"))
        table_note(table, "%s", note);
    return table->failed ? -1 : 0;
}

static int read_table(const H5File *file, Table *table) {
    const Text path = text_of("/tables/%s", table->name);
    const char *group = path.text;
    char shape[24];
    if (h5_get_text(file, group, "title", table->title, sizeof table->title) ||
        h5_get_text(file, group, "head", table->row_head, sizeof table->row_head) ||
        h5_get_text(file, group, "figure", shape, sizeof shape) ||
        h5_get_text(file, group, "axis", table->axis, sizeof table->axis) ||
        read_notes(file, group, table) || read_heads(file, group, table) ||
        read_rows(file, group, table))
        return -1;
    int known = find_name(shape, shape_names, FIGURE_SHAPES);
    if (known < 0) return damaged(file, group);
    table->figure = (FigureShape)known;
    for (int c = 0; c < table->columns; c++)
        if (read_cells(file, group, table, c)) return -1;
    return 0;
}

int tables_read(Tables *tables, const char *path) {
    char name[TABLES_MAX][H5_NAME];
    H5File file;
    if (h5_open(&file, path)) return -1;
    int failed = h5_get_fields(&file, "/provenance", provenance_fields, PROVENANCE_FIELDS,
                               &tables->provenance);
    int count = failed ? 0 : read_names(&file, "/tables", TABLES_MAX, name);
    if (!failed && count >= 0 && count != h5_count(&file, "/tables"))
        failed = damaged(&file, "/tables"); /* a table without a number */
    for (int t = 0; t < count && !failed; t++)
        failed = read_table(&file, tables_add(tables, name[t], "", "", NULL, 0));
    h5_close(&file);
    return failed || count < 0 ? -1 : 0;
}
