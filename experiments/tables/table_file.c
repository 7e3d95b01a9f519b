/* Tables as an HDF5 file: see table.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/checksum.h"
#include "../store/settings.h"
#include "table.h"

enum { VERSION = 1, PATH = 160, NOTES = TABLE_NOTES * (TABLE_NOTE + 1) };

static const char format_name[] = "bcd tables";
static const char *const kind_names[] = {"number", "per cent", "deviation", "text"};
static const char *const shape_names[FIGURE_SHAPES] = {"", "lines", "bars", "stacked bars",
                                                       "timeline"};

/* ---- checksum ---------------------------------------------------------------------------------
 */

static uint64_t add_text(uint64_t sum, const char *text) {
    return checksum_bytes(sum, (const unsigned char *)text, strlen(text) + 1);
}

/* An empty cell is one NaN of many. */
static uint64_t add_number(uint64_t sum, double value) {
    uint64_t bits = 1; /* which no number of a table has */
    if (!isnan(value)) memcpy(&bits, &value, sizeof bits);
    return checksum_add(sum, bits);
}

/* Over what a reader of the table goes by: its words, its columns, its cells with their sources. */
static uint64_t table_checksum(const Table *table) {
    uint64_t sum = add_text(add_text(CHECKSUM_START, table->title), table->row_head);
    for (int n = 0; n < table->notes; n++) sum = add_text(sum, table->note[n]);
    for (int c = 0; c < table->columns; c++)
        sum = add_text(add_text(sum, table->column[c].name), table->column[c].head);
    for (int r = 0; r < table->rows; r++) sum = add_text(sum, table->label[r]);
    for (int i = 0; i < table->rows * table->columns; i++) {
        const Cell *cell = &table->cell[i];
        sum = add_number(add_number(sum, cell->value), cell->spread);
        sum = checksum_add(add_text(sum, cell->text), cell->source);
    }
    return sum;
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool is_unit(const char *text) {
    static const char *const units[] = {"ms", "s",   "h",      "bytes", "MiB",     "GiB",
                                        "$",  "$/h", "points", "1/s",   "updates", "ms/1k tok."};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(text, units[i]) == 0) return true;
    return false;
}

/* What the numbers of a column are counted in; "" if nothing.  "ms by cost" is ms, and below heads
 * stand other words too: those of ratios have a slash. */
static void unit_of(char unit[24], const Table *table, int column) {
    const TableColumn *c = &table->column[column];
    snprintf(unit, 24, "%s", c->unit);
    if (is_unit(unit)) return;
    unit[strcspn(unit, " ")] = 0;
    if (is_unit(unit)) return;
    bool counted = c->kind == COLUMN_NUMBER && *c->unit && !strchr(c->unit, '/');
    snprintf(unit, 24, "%s", counted ? table->unit : "");
}

/* What is stored of a column. */
typedef enum { PART_VALUES, PART_SPREADS, PART_TEXTS, PART_SOURCES } TablePart;

static void write_part(H5File *file, const char *path, const char *scale, const Table *table,
                       int column, TablePart part) {
    size_t rows = (size_t)table->rows, columns = (size_t)table->columns;
    H5Dim dim = {"row", rows, scale};
    double *values = malloc(rows * sizeof *values + 1);
    char(*texts)[H5_NAME] = calloc(rows + 1, sizeof *texts);
    for (size_t r = 0; r < rows && values && texts; r++) {
        const Cell *cell = &table->cell[r * columns + (size_t)column];
        values[r] = part == PART_SPREADS ? cell->spread : cell->value;
        snprintf(texts[r], H5_NAME, "%s",
                 part == PART_TEXTS ? cell->text : source_names[cell->source]);
    }
    char unit[24];
    unit_of(unit, table, column);
    if (!values || !texts)
        file->failed = error_set("%s: out of memory", file->path) != 0;
    else if (part == PART_VALUES || part == PART_SPREADS)
        h5_write(file, path, H5_DOUBLE, values, 1, &dim, *unit ? unit : NULL);
    else
        h5_write(file, path, H5_TEXT, texts, 1, &dim, NULL);
    free(values);
    free(texts);
}

static bool has_spread(const Table *table, int column) {
    for (int r = 0; r < table->rows; r++)
        if (isfinite(table->cell[r * table->columns + column].spread)) return true;
    return false;
}

static void write_column(H5File *file, const char *group, const Table *table, int number) {
    const TableColumn *column = &table->column[number];
    char path[PATH], scale[PATH], sources[PATH + 8], spreads[PATH + 8];
    snprintf(path, sizeof path, "%s/%s", group, column->name);
    snprintf(spreads, sizeof spreads, "%s_spread", path);
    snprintf(scale, sizeof scale, "%s/row", group);
    snprintf(sources, sizeof sources, "%s_source", path);
    write_part(file, path, scale, table, number,
               column->kind == COLUMN_TEXT ? PART_TEXTS : PART_VALUES);
    write_part(file, sources, scale, table, number, PART_SOURCES);
    if (has_spread(table, number)) write_part(file, spreads, scale, table, number, PART_SPREADS);
    h5_set_text(file, path, "head", column->head);
    char unit[24];
    unit_of(unit, table, number);
    if (strcmp(unit, column->unit) != 0) h5_set_text(file, path, "below", column->unit);
    h5_set_text(file, path, "kind", kind_names[column->kind]);
    h5_set_int(file, path, "decimals", column->decimals);
    h5_set_int(file, path, "number", number);
}

static void write_table(H5File *file, const Table *table, int number) {
    char group[PATH / 2], path[PATH], notes[NOTES] = "";
    H5Dim rows = {"row", (size_t)table->rows, NULL};
    snprintf(group, sizeof group, "/tables/%s", table->name);
    snprintf(path, sizeof path, "%s/row", group);
    for (int n = 0; n < table->notes; n++) {
        if (n) strcat(notes, "\n");
        strcat(notes, table->note[n]);
    }
    h5_write(file, path, H5_TEXT, table->label, 1, &rows, NULL);
    h5_set_text(file, group, "title", table->title);
    h5_set_text(file, group, "head", table->row_head);
    h5_set_text(file, group, "notes", notes);
    h5_set_text(file, group, "figure", shape_names[table->figure]);
    h5_set_text(file, group, "axis", table->axis);
    h5_set_int(file, group, "number", number);
    h5_set_count(file, group, "checksum", table_checksum(table));
    for (int c = 0; c < table->columns; c++) write_column(file, group, table, c);
}

void tables_store(H5File *file, const Tables *tables) {
    if (tables_failed(tables)) file->failed = true;
    for (int t = 0; t < tables->tables; t++) write_table(file, tables->table[t], t);
}

int tables_write(const Tables *tables, const Options *options, const char *path) {
    H5File file;
    if (tables_failed(tables) || h5_create(&file, path)) return -1;
    h5_set_text(&file, "/", "format", format_name);
    h5_set_int(&file, "/", "version", VERSION);
    Provenance provenance = tables->provenance;
    if (provenance.wall == 0) provenance.wall = provenance_seconds();
    provenance_write(&file, "/provenance", &provenance);
    settings_write_given(&file, "/settings", options);
    tables_store(&file, tables);
    return h5_commit(&file);
}

/* ---- reading --------------------------------------------------------------------------------- */

int tables_recognise(const char *path) {
    H5File file;
    char format[64] = "";
    if (h5_open(&file, path)) return -1;
    bool known = h5_has(&file, "/", "format") &&
                 h5_get_text(&file, "/", "format", format, sizeof format) == 0;
    h5_close(&file);
    return known && strcmp(format, format_name) == 0;
}

static int find_name(const char *name, const char *const *names, int count) {
    for (int i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0) return i;
    return -1;
}

static int damaged(const H5File *file, const char *object) {
    return error_set("%s: %s: not as this program writes it", file->path, object);
}

/* What is shown below the head: its unit, unless it says so itself. */
static int read_below(const H5File *file, const char *path, char text[24]) {
    const char *name = h5_has(file, path, "below") ? "below" : "unit";
    return h5_has(file, path, name) ? h5_get_text(file, path, name, text, 24) : 0;
}

static int read_column_head(const H5File *file, const char *path, TableColumn *column) {
    char kind[24];
    int64_t decimals;
    if (h5_get_text(file, path, "head", column->head, sizeof column->head) ||
        h5_get_text(file, path, "kind", kind, sizeof kind) ||
        h5_get_int(file, path, "decimals", &decimals) || read_below(file, path, column->unit))
        return -1;
    int known = find_name(kind, kind_names, COLUMN_TEXT + 1);
    if (known < 0 || decimals < DECIMALS_FREE || decimals > 20) return damaged(file, path);
    column->kind = (ColumnKind)known;
    column->decimals = (int)decimals;
    return 0;
}

/* The columns of a table, in their order: those data sets that have a number. */
static int read_heads(const H5File *file, const char *group, Table *table) {
    bool found[TABLE_COLUMNS] = {false};
    int links = h5_count(file, group);
    for (int i = 0; i < links; i++) {
        char name[H5_NAME], path[PATH + H5_NAME];
        int64_t number;
        if (h5_name(file, group, i, name)) return -1;
        snprintf(path, sizeof path, "%s/%s", group, name);
        if (!h5_has(file, path, "number")) continue;
        if (h5_get_int(file, path, "number", &number)) return -1;
        if (number < 0 || number >= TABLE_COLUMNS || found[number] ||
            strlen(name) >= sizeof table->column->name)
            return damaged(file, path);
        found[number] = true;
        table->columns++;
        TableColumn *column = &table->column[number];
        snprintf(column->name, sizeof column->name, "%.47s", name);
        if (read_column_head(file, path, column)) return -1;
    }
    for (int c = 0; c < table->columns; c++)
        if (!found[c]) return damaged(file, group);
    return links < 0 ? -1 : 0;
}

/* Nothing where the file has none, or the column holds texts. */
static int read_spreads(const H5File *file, const char *group, Table *table, int column) {
    size_t rows = (size_t)table->rows;
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s_spread", group, table->column[column].name);
    if (!h5_exists(file, path)) return 0;
    double *spread = malloc(rows * sizeof *spread + 1);
    int failed = spread ? h5_read(file, path, H5_DOUBLE, spread, 1, &rows)
                        : error_set("%s: out of memory", file->path);
    for (size_t r = 0; r < rows && !failed; r++)
        table->cell[r * (size_t)table->columns + (size_t)column].spread = spread[r];
    free(spread);
    return failed;
}

static int read_cells(const H5File *file, const char *group, Table *table, int column) {
    size_t rows = (size_t)table->rows, columns = (size_t)table->columns;
    char path[PATH], sources[PATH + 8];
    bool is_text = table->column[column].kind == COLUMN_TEXT;
    double *value = malloc(rows * sizeof *value + 1);
    char(*text)[H5_NAME] = calloc(rows + 1, sizeof *text);
    char(*source)[H5_NAME] = calloc(rows + 1, sizeof *source);
    int failed = value && text && source ? 0 : error_set("%s: out of memory", file->path);
    snprintf(path, sizeof path, "%s/%s", group, table->column[column].name);
    snprintf(sources, sizeof sources, "%s_source", path);
    failed = failed || (is_text ? h5_read(file, path, H5_TEXT, text, 1, &rows)
                                : h5_read(file, path, H5_DOUBLE, value, 1, &rows));
    failed = failed || h5_read(file, sources, H5_TEXT, source, 1, &rows);
    for (size_t r = 0; r < rows && !failed; r++) {
        Cell *cell = &table->cell[r * columns + (size_t)column];
        int known = find_name(source[r], source_names, SOURCES);
        if (known < 0) failed = damaged(file, sources);
        *cell = (Cell){.value = is_text ? NAN : value[r], .spread = NAN, .source = (Source)known};
        if (is_text) snprintf(cell->text, sizeof cell->text, "%.63s", text[r]);
    }
    free(value);
    free(text);
    free(source);
    return failed || is_text ? failed : read_spreads(file, group, table, column);
}

/* Labels, and empty cells. */
static int read_rows(const H5File *file, const char *group, Table *table) {
    static const H5Column label = {"row", H5_TEXT, 0, NULL};
    size_t rows;
    table->label = h5_read_table(file, group, &label, 1, sizeof *table->label, &rows);
    if (!table->label) return -1;
    if (rows > 1000000) return damaged(file, group);
    table->rows = table->capacity = (int)rows;
    table->cell = calloc(rows * (size_t)table->columns + 1, sizeof *table->cell);
    if (!table->cell) return error_set("%s: out of memory", file->path);
    for (size_t r = 0; r < rows; r++) table->label[r][H5_NAME - 1] = 0;
    return 0;
}

static int read_notes(const H5File *file, const char *group, Table *table) {
    char notes[NOTES];
    if (h5_get_text(file, group, "notes", notes, sizeof notes)) return -1;
    for (char *note = strtok(notes, "\n"); note; note = strtok(NULL, "\n"))
        table_note(table, "%s", note);
    return table->failed ? -1 : 0;
}

static int read_table(const H5File *file, Table *table) {
    char group[PATH / 2], shape[24];
    snprintf(group, sizeof group, "/tables/%s", table->name);
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
    /* Files written before there were any have none. */
    uint64_t checksum = table_checksum(table);
    if (h5_has(file, group, "checksum") && h5_get_count(file, group, "checksum", &checksum))
        return -1;
    if (checksum == table_checksum(table)) return 0;
    return error_set("%s: %s: damaged: it does not agree with its checksum", file->path, group);
}

/* Adds the tables by name in the order they were written in. */
static int read_names(const H5File *file, Tables *tables) {
    char names[TABLES_MAX][H5_NAME] = {""}, name[H5_NAME], path[PATH];
    int count = h5_count(file, "/tables");
    for (int t = 0; t < count; t++) {
        int64_t number;
        if (h5_name(file, "/tables", t, name)) return -1;
        snprintf(path, sizeof path, "/tables/%s", name);
        if (h5_get_int(file, path, "number", &number)) return -1;
        if (number < 0 || number >= TABLES_MAX || number >= count || *names[number] ||
            strlen(name) >= sizeof tables->table[0]->name)
            return damaged(file, path);
        snprintf(names[number], H5_NAME, "%s", name);
    }
    for (int t = 0; t < count; t++) tables_add(tables, names[t], "", "", NULL, 0);
    return count < 0 || tables_failed(tables) ? -1 : 0;
}

int tables_read(Tables *tables, const char *path) {
    H5File file;
    if (h5_open(&file, path)) return -1;
    int failed =
        provenance_read(&file, "/provenance", &tables->provenance) || read_names(&file, tables);
    for (int t = 0; t < tables->tables && !failed; t++)
        failed = read_table(&file, tables->table[t]);
    h5_close(&file);
    return failed ? -1 : 0;
}
