#include "tables_sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../data/scratch.h"
#include "../test.h"
#include "compare.h"

static void add_memory(Tables *tables) {
    enum { PARTS, PUBLISHED, CLOSED, DEVIATION, COLUMNS };
    static const TableColumn columns[COLUMNS] = {
        [PARTS] = {"parts", "N/G", "", COLUMN_TEXT, 0, SOURCE_NONE},
        [PUBLISHED] = {"published", "published", "GiB", COLUMN_NUMBER, 3, SOURCE_NONE},
        [CLOSED] = {"closed", "closed form", "GiB", COLUMN_NUMBER, 3, SOURCE_NONE},
        [DEVIATION] = {"deviation", "deviation", "", COLUMN_DEVIATION, 1, SOURCE_NONE},
    };
    Table *table = tables_add(tables, "memory", "Sample: memory", "model", columns, COLUMNS);
    table_row(table, "one");
    table_number(table, PUBLISHED, 12, SOURCE_PUBLISHED);
    table_number(table, CLOSED, 12.345, SOURCE_CLOSED_FORM);
    table_put(table, DEVIATION, 12.345 / 12 - 1);
    table_row(table, "two | three");
    table_text(table, PARTS, "%d/%d", 1, 2);
    table_number(table, CLOSED, 0.5, SOURCE_CLOSED_FORM);
    table_note(table, "A note.");
}

static void add_times(Tables *tables) {
    static const TableColumn columns[] = {
        {"small", "G-<small>", "ms", COLUMN_NUMBER, 1, SOURCE_NONE},
        {"large", "G-large", "ms", COLUMN_NUMBER, 1, SOURCE_NONE},
    };
    Table *table = tables_add(tables, "second", "Sample: times & \"more\"", "UFP", columns, 2);
    table->timeline = true;
    for (int m = 3; m <= 5; m++) {
        table_row(table, "1/%d", m);
        table_number(table, 0, 1000.0 / m, SOURCE_MEASURED);
        table_number(table, 1, 2500.0 / m, SOURCE_SIMULATED);
    }
}

Tables sample_tables(void) {
    Tables tables = {0};
    add_memory(&tables);
    add_times(&tables);
    return tables;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Returns the number that a table or column has in its order, -1 if it has none. */
static int number_of(const H5File *file, const char *path, int max) {
    int number = -1;
    if (!h5_has(file, path, "number")) return -1;
    CHECK(h5_get(file, path, "number", H5_INT, &number) == 0 && number >= 0 && number < max,
          "%s: number %d", path, number);
    return number;
}

static int find(const char *name, const char *const *names, int count) {
    int i = 0;
    while (i < count && strcmp(names[i], name)) i++;
    return CHECK(i < count, "no \"%s\"", name) ? i : 0;
}

static void read_text(const H5File *file, const char *path, const char *name, char *text,
                      size_t size) {
    CHECK(h5_get_text(file, path, name, text, size) == 0, "%s", error_message());
}

static void read_head(const H5File *file, const char *path, TableColumn *column) {
    static const char *const kinds[] = {"number", "per cent", "deviation", "text"};
    char kind[24] = "";
    const char *below = h5_has(file, path, "below") ? "below" : "unit";
    read_text(file, path, "head", column->head, sizeof column->head);
    read_text(file, path, "kind", kind, sizeof kind);
    if (h5_has(file, path, below)) read_text(file, path, below, column->unit, sizeof column->unit);
    CHECK(h5_get(file, path, "decimals", H5_INT, &column->decimals) == 0, "%s", error_message());
    column->kind = (ColumnKind)find(kind, kinds, COLUMN_TEXT + 1);
}

static void read_column(const H5File *file, const char *group, Table *table, int number) {
    typedef struct {
        double value;
        char text[H5_NAME], source[H5_NAME];
    } Row;
    const TableColumn *column = &table->column[number];
    const bool text = column->kind == COLUMN_TEXT;
    const Text source = text_of("%s_source", column->name);
    const H5Column columns[] = {
        {.name = column->name,
         .kind = text ? H5_TEXT : H5_DOUBLE,
         .offset = text ? offsetof(Row, text) : offsetof(Row, value)},
        {.name = source.text, .kind = H5_TEXT, .offset = offsetof(Row, source)}};
    size_t rows = 0;
    Row *row = h5_read_table(file, group, columns, 2, sizeof *row, &rows);
    if (!CHECK(row && (int)rows == table->rows, "%s", error_message())) rows = 0;
    for (size_t r = 0; r < rows; r++) {
        Cell *to = &table->cell[r * (size_t)table->columns + (size_t)number];
        *to = (Cell){.value = text ? NAN : row[r].value,
                     .source = (Source)find(row[r].source, source_names, SOURCES)};
        strcpy(to->text, row[r].text);
    }
    free(row);
}

static void read_table(const H5File *file, const char *group, Table *table) {
    static const H5Column labels = {.name = "row", .kind = H5_TEXT};
    char notes[TABLE_NOTES * TABLE_NOTE] = "", figure[24] = "", axis[24] = "", name[H5_NAME];
    size_t rows = 0;
    read_text(file, group, "title", table->title, sizeof table->title);
    read_text(file, group, "head", table->row_head, sizeof table->row_head);
    read_text(file, group, "axis", axis, sizeof axis);
    read_text(file, group, "figure", figure, sizeof figure);
    read_text(file, group, "notes", notes, sizeof notes);
    table->timeline = strcmp(figure, "timeline") == 0;
    CHECK(strcmp(axis, table->timeline ? "ms" : "") == 0, "the axis of \"%s\" is \"%s\"", figure,
          axis);
    for (char *note = strtok(notes, "\n"); note; note = strtok(NULL, "\n"))
        table_note(table, "%s", note);
    for (int i = 0; i < h5_count(file, group) && h5_name(file, group, i, name) == 0; i++) {
        const Text path = text_of("%s/%s", group, name);
        const int number = number_of(file, path.text, TABLE_COLUMNS);
        if (number < 0) continue;
        snprintf(table->column[number].name, TABLE_NAME, "%.*s", TABLE_NAME - 1, name);
        read_head(file, path.text, &table->column[number]);
        table->columns++;
    }
    char(*label)[H5_NAME] = h5_read_table(file, group, &labels, 1, sizeof *label, &rows);
    CHECK(label, "%s", error_message());
    for (size_t r = 0; r < rows; r++) table_row(table, "%s", label[r]);
    free(label);
    for (int c = 0; c < table->columns; c++) read_column(file, group, table, c);
}

bool read_tables(Tables *tables, const char *name) {
    char found[TABLES_MAX][H5_NAME] = {""}, group[H5_NAME];
    H5File file;
    *tables = (Tables){0};
    if (!CHECK(h5_open(&file, scratch_path(name)) == 0, "%s", error_message())) return false;
    CHECK(h5_get_fields(&file, "/provenance", provenance_fields, PROVENANCE_FIELDS,
                        &tables->provenance) == 0,
          "%s", error_message());
    const int count = h5_count(&file, "/tables");
    for (int i = 0; i < count && h5_name(&file, "/tables", i, group) == 0; i++) {
        const int number = number_of(&file, text_of("/tables/%s", group).text, count);
        if (CHECK(number >= 0, "no number: %s", group)) strcpy(found[number], group);
    }
    for (int t = 0; t < count; t++)
        read_table(&file, text_of("/tables/%s", found[t]).text,
                   tables_add(tables, found[t], "", "", NULL, 0));
    h5_close(&file);
    return count > 0;
}

const Table *tables_find(const Tables *tables, const char *name) {
    for (int t = 0; t < tables->tables; t++)
        if (strcmp(tables->table[t]->name, name) == 0) return tables->table[t];
    return NULL;
}

const Cell *table_find(const Table *table, const char *label, const char *column) {
    for (int r = 0; r < table->rows; r++)
        for (int c = 0; c < table->columns; c++)
            if (!strcmp(table->label[r], label) && !strcmp(table->column[c].name, column))
                return &table->cell[r * table->columns + c];
    return NULL;
}

double cell(const Tables *tables, const char *table, const char *row, const char *column) {
    const Table *found = tables_find(tables, table);
    const Cell *c = found ? table_find(found, row, column) : NULL;
    return CHECK(c, "no %s, %s, %s", table, row, column) ? c->value : NAN;
}
