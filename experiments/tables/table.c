#include "table.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

const char *const source_names[SOURCES] = {[SOURCE_NONE] = "",
                                           [SOURCE_GIVEN] = "given (data sheet or command line)",
                                           [SOURCE_MEASURED] = "measured",
                                           [SOURCE_SIMULATED] = "simulated",
                                           [SOURCE_CLOSED_FORM] = "closed form",
                                           [SOURCE_PUBLISHED] = "published"};
const char *const source_marks[SOURCES] = {"", "g", "m", "s", "c", "p"};

static void fail(Table *table, const char *what) {
    error_set("table %s: %s", table->name, what);
    table_fail(table);
}

void table_fail(Table *table) { table->failed = true; }

Table *tables_add(Tables *tables, const char *name, const char *title, const char *row_head,
                  const TableColumn *columns, int count) {
    assert(tables->tables < TABLES_MAX);
    Table *table = tables->table[tables->tables++] = xcalloc(1, sizeof *table);
    snprintf(table->name, sizeof table->name, "%s", name);
    snprintf(table->title, sizeof table->title, "%s", title);
    snprintf(table->row_head, sizeof table->row_head, "%s", row_head);
    table_columns(table, columns, count);
    return table;
}

void table_columns(Table *table, const TableColumn *columns, int count) {
    assert(table->rows == 0 && table->columns + count <= TABLE_COLUMNS);
    for (int c = 0; c < count; c++) table->column[table->columns++] = columns[c];
}

void table_memory_columns(Table *table, const char *unit, int decimals) {
    static const char *const names[MEMORY_COLUMNS] = {"parameters", "gradients", "state",
                                                      "activations"};
    for (int c = 0; c < MEMORY_COLUMNS; c++) {
        TableColumn column = {.decimals = decimals, .source = SOURCE_CLOSED_FORM};
        strcpy(column.name, names[c]);
        strcpy(column.head, names[c]);
        snprintf(column.unit, sizeof column.unit, "%s", unit);
        table_columns(table, &column, 1);
    }
}

bool tables_failed(const Tables *tables) {
    for (int t = 0; t < tables->tables; t++)
        if (tables->table[t]->failed) return true;
    return false;
}

void tables_free(Tables *tables) {
    for (int t = 0; t < tables->tables; t++) {
        free(tables->table[t]->label);
        free(tables->table[t]->cell);
        free(tables->table[t]);
    }
    *tables = (Tables){0};
}

void table_note(Table *table, const char *format, ...) {
    if (table->failed) return;
    if (table->notes == TABLE_NOTES) {
        fail(table, "too many notes");
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(table->note[table->notes++], TABLE_NOTE, format, arguments);
    va_end(arguments);
    if (length >= TABLE_NOTE) fail(table, "a note is too long");
}

/* Makes room for one more row. */
static void reserve_row(Table *table) {
    if (table->rows < table->capacity) return;
    table->capacity = 2 * table->capacity + 8;
    size_t rows = (size_t)table->capacity, cells = rows * (size_t)table->columns;
    table->label = xrealloc(table->label, rows * sizeof *table->label);
    table->cell = xrealloc(table->cell, cells * sizeof *table->cell);
}

static Cell *last_row(const Table *table) {
    return table->cell + (size_t)(table->rows - 1) * (size_t)table->columns;
}

void table_row(Table *table, const char *format, ...) {
    if (table->failed) return;
    reserve_row(table);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(table->label[table->rows++], H5_NAME, format, arguments);
    va_end(arguments);
    for (int c = 0; c < table->columns; c++) last_row(table)[c] = (Cell){.value = NAN};
}

void table_number(Table *table, int column, double value, Source source) {
    if (table->failed) return;
    last_row(table)[column] = (Cell){.value = value, .source = isnan(value) ? SOURCE_NONE : source};
}

void table_put_all(Table *table, int first, int count, const double *values) {
    for (int c = 0; c < count; c++)
        table_number(table, first + c, values[c], table->column[first + c].source);
}

void table_text(Table *table, int column, const char *format, ...) {
    if (table->failed) return;
    Cell *cell = &last_row(table)[column];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(cell->text, sizeof cell->text, format, arguments);
    va_end(arguments);
}
