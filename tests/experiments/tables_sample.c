#include "tables_sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../test.h"

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
    table->figure = FIGURE_LINES;
    /* Every format must quote this text. */
    strcpy(table->axis, "ms per iteration \"; exit ' # <b>");
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

double number_in(const Tables *tables, const char *table, const char *row, const char *column,
                 Source source) {
    const Table *found = tables_find(tables, table);
    const Cell *cell = found ? table_find(found, row, column) : NULL;
    if (!CHECK(cell, "no cell %s, %s, %s", table, row, column)) return NAN;
    CHECK(cell->source == source, "%s, %s, %s: %s", table, row, column, source_names[cell->source]);
    return cell->value;
}
