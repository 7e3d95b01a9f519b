/* Tables as data: shown with the source of each number, and back from their file as they were. */
#include <hdf5.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../experiments/tables/table.h"
#include "../data/scratch.h"
#include "../leak.h"
#include "cli.h"
#include "tables_sample.h"

/* Returns what a printer writes, for the caller to free. */
static char *printed(int (*print)(FILE *, const Table *), const Table *table) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    CHECK(out && print(out, table) == 0, "%s", error_message());
    fclose(out);
    return text;
}

static void case_terminal(void) {
    Tables tables = sample_tables();
    char *text = printed(table_print, tables.table[0]);
    static const char *const expected =
        "Sample: memory\n"
        "\n"
        "model        N/G  published  closed form  deviation\n"
        "                        GiB          GiB\n"
        "-----------  ---  ---------  -----------  ---------\n"
        "one                12.000 p     12.345 c     +2.9 %\n"
        "two | three  1/2                 0.500 c\n"
        "\n"
        "c closed form, p published\n"
        "A note.\n"
        "\n";
    CHECK(strcmp(text, expected) == 0, "\n%s", text);
    free(text);
    tables_free(&tables);
}

/* The last place of a double does not decide how a number halfway between two printed ones is
 * rounded. */
static void case_digits(void) {
    static const struct {
        ColumnKind kind;
        int decimals;
        double value;
        const char *text;
    } cells[] = {{COLUMN_NUMBER, 2, 6.9639, "6.96"},
                 {COLUMN_NUMBER, 1, 86, "86.0"},
                 {COLUMN_PERCENT, 1, 0.0008, "0.1 %"},
                 {COLUMN_PERCENT, 1, 0.565, "56.5 %"},
                 {COLUMN_NUMBER, DECIMALS_FREE, 331.7375, "331.7375"},
                 {COLUMN_NUMBER, 0, 2432.6, "2433"},
                 {COLUMN_NUMBER, 2, 1.0 / 3, "0.33"},
                 {COLUMN_NUMBER, 2, 2.675, "2.67"},
                 {COLUMN_NUMBER, 2, 2.6750000000000003, "2.67"},
                 {COLUMN_PERCENT, 2, 0.4034 - 0.49645, "-9.30 %"},
                 {COLUMN_PERCENT, 2, -0.09305, "-9.30 %"},
                 {COLUMN_PERCENT, 2, -0.09305000000000002, "-9.30 %"}};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        TableColumn column = {"x", "x", "", cells[i].kind, cells[i].decimals, SOURCE_NONE};
        Tables tables = {0};
        Table *table = tables_add(&tables, "t", "T", "row", &column, 1);
        table_row(table, "one");
        table_number(table, 0, cells[i].value, SOURCE_MEASURED);
        const Text text = table_format(table, 0, 0);
        CHECK(!strcmp(text.text, cells[i].text), "%s, not %s", text.text, cells[i].text);
        tables_free(&tables);
    }
}

/* Six of ten columns of twelve characters fit in 100, next to a label of four. */
static void case_wide(void) {
    enum { COLUMNS = 10 };
    TableColumn columns[COLUMNS];
    Tables tables = {0};
    for (int c = 0; c < COLUMNS; c++)
        columns[c] = (TableColumn){.name = "c", .head = "twelve wide.", .kind = COLUMN_NUMBER};
    Table *table = tables_add(&tables, "wide", "Wide", "row", columns, COLUMNS);
    table_row(table, "four");
    for (int c = 0; c < COLUMNS; c++)
        table_number(table, c, c, c == 0 ? SOURCE_MEASURED : SOURCE_NONE);
    char *text = printed(table_print, table);
    CHECK(strstr(text, "  4             5\n\nrow   twelve wide.  ") &&
              strstr(text, "\nfour             6             7             8             9\n") &&
              strstr(text, "\nm measured\n"),
          "%s", text);
    free(text);
    tables_free(&tables);
}

static void check_same_table(const Table *a, const Table *b) {
    CHECK(!strcmp(a->name, b->name) && !strcmp(a->title, b->title) &&
              !strcmp(a->row_head, b->row_head) && a->timeline == b->timeline,
          "%s: %s, %s", a->name, b->name, b->title);
    CHECK(a->notes == b->notes && !memcmp(a->note, b->note, sizeof a->note[0]), "notes");
    if (!CHECK(a->rows == b->rows && a->columns == b->columns, "%d x %d", b->rows, b->columns))
        return;
    for (int c = 0; c < a->columns; c++) {
        const TableColumn *x = &a->column[c], *y = &b->column[c];
        CHECK(!strcmp(x->name, y->name) && !strcmp(x->head, y->head) && !strcmp(x->unit, y->unit) &&
                  x->kind == y->kind && x->decimals == y->decimals,
              "column %s", y->name);
    }
    for (int r = 0; r < a->rows; r++)
        CHECK(!strcmp(a->label[r], b->label[r]), "row %s", b->label[r]);
    for (int i = 0; i < a->rows * a->columns; i++) {
        const Cell *x = &a->cell[i], *y = &b->cell[i];
        CHECK((x->value == y->value || (isnan(x->value) && isnan(y->value))) &&
                  x->source == y->source && !strcmp(x->text, y->text),
              "cell %d: %g %s", i, y->value, y->text);
    }
}

static void case_file_round_trip(void) {
    const char *path = scratch_path("tables.h5");
    Tables tables = sample_tables(), back = {0};
    CommandLine line;
    command_line_defaults(&line, COMMAND_TRACE);
    CHECK(options_set(&line.options, "model", "resnet14") == 0, "%s", error_message());
    provenance_fill(&tables.provenance, 7);
    CHECK(tables_write(&tables, &line, path) == 0, "%s", error_message());
    char format[H5_NAME];
    CHECK(h5_format(path, format) == 0 && !strcmp(format, tables_format), "%s", error_message());
    if (read_tables(&back, "tables.h5") && CHECK(back.tables == tables.tables, "tables"))
        for (int t = 0; t < tables.tables; t++) check_same_table(tables.table[t], back.table[t]);
    CHECK(back.provenance.seed == 7 && !strcmp(back.provenance.commit, tables.provenance.commit),
          "provenance");
    tables_free(&tables);
    tables_free(&back);
}

/* The file has the datasets and attributes that another program needs. */
static void case_file_schema(void) {
    H5File file;
    Tables tables = sample_tables();
    CommandLine line;
    char text[H5_NAME];
    int64_t number;
    size_t size[H5_RANK];
    command_line_defaults(&line, COMMAND_TRACE);
    CHECK(options_set(&line.options, "model", "resnet14") == 0, "%s", error_message());
    strcpy(tables.table[0]->column[2].unit, "all");
    strcpy(tables.table[0]->unit, "GiB");
    CHECK(tables_write(&tables, &line, scratch_path("schema.h5")) == 0, "%s", error_message());
    tables_free(&tables);
    if (!CHECK(h5_open(&file, scratch_path("schema.h5")) == 0, "%s", error_message())) return;
    CHECK(h5_get_text(&file, "/settings", "model", text, sizeof text) == 0 &&
              !strcmp(text, "resnet14") && !h5_has(&file, "/settings", "data"),
          "settings: the flags given");
    CHECK(h5_get_text(&file, "/tables/memory/published", "unit", text, sizeof text) == 0 &&
              !strcmp(text, "GiB"),
          "unit");
    CHECK(!h5_has(&file, "/tables/memory/published", "below"), "below");
    CHECK(h5_get_text(&file, "/tables/memory/closed", "unit", text, sizeof text) == 0 &&
              !strcmp(text, "GiB") &&
              h5_get_text(&file, "/tables/memory/closed", "below", text, sizeof text) == 0 &&
              !strcmp(text, "all"),
          "below a head that has no unit of its own: %s", text);
    CHECK(!h5_has(&file, "/tables/memory/deviation", "unit"), "a ratio has a unit");
    CHECK(h5_size(&file, "/tables/memory/published", size) == 1 && size[0] == 2, "rows");
    CHECK(h5_has(&file, "/tables/memory/published", "DIMENSION_LIST") &&
              h5_has(&file, "/tables/memory/row", "REFERENCE_LIST"),
          "no dimension scale");
    char sources[2][H5_NAME];
    CHECK(h5_read(&file, "/tables/memory/closed_source", H5_TEXT, sources, 1, (size_t[]){2}) == 0 &&
              !strcmp(sources[0], "closed form"),
          "source");
    CHECK(h5_get(&file, "/tables/second", "number", H5_INT64, &number) == 0 && number == 1,
          "order");
    CHECK(h5_get(&file, "/", "version", H5_INT64, &number) == 0 && number == 1,
          "files of an earlier program have version 1");
    h5_close(&file);
}

/* The file has the unit of a column that has one, whatever it is. */
static void case_units(void) {
    static const char *const units[] = {"us", "ms",  "s",   "h",    "epochs",  "MiB",    "GiB",
                                        "$",  "$/h", "1/s", "GB/s", "GFLOP/s", "TFLOP/s"};
    enum { UNITS = sizeof units / sizeof *units };
    H5File file;
    Tables tables = {0};
    CommandLine line;
    Table *table = tables_add(&tables, "units", "Units", "row", NULL, 0);
    command_line_defaults(&line, COMMAND_TRACE);
    for (int u = 0; u < UNITS; u++) {
        TableColumn column = {.head = "in", .kind = COLUMN_NUMBER};
        snprintf(column.name, sizeof column.name, "in_%d", u);
        snprintf(column.unit, sizeof column.unit, "%s", units[u]);
        table_columns(table, &column, 1);
    }
    table_row(table, "one");
    CHECK(tables_write(&tables, &line, scratch_path("units.h5")) == 0, "%s", error_message());
    tables_free(&tables);
    if (!CHECK(h5_open(&file, scratch_path("units.h5")) == 0, "%s", error_message())) return;
    for (int u = 0; u < UNITS; u++) {
        const Text path = text_of("/tables/units/in_%d", u);
        char text[H5_NAME] = "";
        CHECK(h5_get_text(&file, path.text, "unit", text, sizeof text) == 0 &&
                  strcmp(text, units[u]) == 0 && !h5_has(&file, path.text, "below"),
              "%s: \"%s\"", units[u], text);
    }
    h5_close(&file);
}

/* A failure is remembered until the table is used. */
static void case_too_much(void) {
    Tables tables = {0};
    static const TableColumn column = {"x", "x", "", COLUMN_NUMBER, 0, SOURCE_NONE};
    Table *table = tables_add(&tables, "notes", "Notes", "row", &column, 1);
    for (int n = 0; n <= TABLE_NOTES; n++) table_note(table, "note %d", n);
    table_row(table, "row");
    table_number(table, 0, 1, SOURCE_NONE);
    CHECK(table_print(stdout, table) == -1 && strstr(error_message(), "too many notes"), "%s",
          error_message());
    table = tables_add(&tables, "wordy", "Wordy", "row", &column, 1);
    table_note(table, "%0*d", TABLE_NOTE, 7);
    CHECK(table_print(stdout, table) == -1 && strstr(error_message(), "a note is too long"), "%s",
          error_message());
    CHECK(tables_failed(&tables) &&
              tables_write(&tables, &(CommandLine){0}, scratch_path("wordy.h5")) == -1 &&
              strstr(error_message(), "a note is too long"),
          "%s", error_message());
    tables_free(&tables);
    CHECK(!tables_failed(&tables), "failed at once");
}

/* A letter of two bytes takes one column, in labels and in cells. */
static void case_long_letters(void) {
    static const TableColumn columns[] = {{"x", "x", "", COLUMN_NUMBER, 1, SOURCE_MEASURED},
                                          {"y", "y", "", COLUMN_TEXT, 0, SOURCE_NONE}};
    static const char *const rows[][2] = {{"\u00C5\u00C5", "\u00E9\u00E9"}, {"four", "three"}};
    Tables tables = {0};
    Table *table = tables_add(&tables, "letters", "Letters", "row", columns, 2);
    for (int r = 0; r < 2; r++) {
        table_row(table, "%s", rows[r][0]);
        table_number(table, 0, r ? 12345678 : 1, SOURCE_MEASURED);
        table_text(table, 1, "%s", rows[r][1]);
    }
    char *text = printed(table_print, table);
    static const char *const expected =
        "Letters\n"
        "\n"
        "row              x      y\n"
        "----  ------------  -----\n"
        "\u00C5\u00C5           1.0 m     \u00E9\u00E9\n"
        "four  12345678.0 m  three\n"
        "\n"
        "m measured\n"
        "\n";
    CHECK(strcmp(text, expected) == 0, "\n%s", text);
    free(text);
    tables_free(&tables);
}

static void write_and_print(void) {
    Tables tables = sample_tables();
    CommandLine line;
    command_line_defaults(&line, COMMAND_TRACE);
    CHECK(tables_write(&tables, &line, scratch_path("again.h5")) == 0, "%s", error_message());
    free(printed(table_print, tables.table[0]));
    free(printed(table_print, tables.table[1]));
    tables_free(&tables);
}

static void case_nothing_is_left(void) {
    CHECK(allocations_left(write_and_print) == 0, "memory is not freed");
    CHECK(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL) == 0, "HDF5 objects are open");
}

void test_tables(void) {
    RUN(case_terminal);
    RUN(case_digits);
    RUN(case_wide);
    RUN(case_long_letters);
    RUN(case_file_round_trip);
    RUN(case_file_schema);
    RUN(case_units);
    RUN(case_too_much);
    RUN(case_nothing_is_left);
}
