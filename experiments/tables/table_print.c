/* Tables for people, in the terminal. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

/* Rounds to 12 significant digits.  The last places of a computed number depend on the compiler and
 * its -O, and would otherwise decide how a number halfway between two printed ones is printed. */
static double round_12(double value) {
    char text[32];
    snprintf(text, sizeof text, "%.12g", value);
    return strtod(text, NULL);
}

/* Formats a number with `decimals` digits after the point; one that rounds to zero has no sign. */
static Text format_number(double value, int decimals, bool sign) {
    if (decimals == DECIMALS_FREE) return text_of("%.7g", value);
    if (fabs(value) < 0.5 * pow(10, -decimals)) return text_of("%.*f", decimals, 0.0);
    return text_of(sign ? "%+.*f" : "%.*f", decimals, value);
}

Text table_format(const Table *table, int row, int column) {
    const TableColumn *c = &table->column[column];
    const Cell *cell = &table->cell[row * table->columns + column];
    double factor = c->kind == COLUMN_NUMBER ? 1 : 100;
    double value = round_12(factor * cell->value);
    if (c->kind == COLUMN_TEXT) return text_of("%s", cell->text);
    if (!isfinite(value)) return text_of("%s", isnan(value) ? "" : "inf");
    Text text = format_number(value, c->decimals, c->kind == COLUMN_DEVIATION);
    if (c->kind != COLUMN_NUMBER) text_add(&text, " %%");
    return text;
}

/* Returns true when a cell of the column has a mark. */
static bool is_marked(const Table *table, int column) {
    for (int r = 0; r < table->rows; r++)
        if (table->cell[r * table->columns + column].source != SOURCE_NONE) return true;
    return false;
}

/* Prints the marks that occur: "m measured, p published". */
static void print_legend(FILE *out, const Table *table) {
    bool used[SOURCES] = {false};
    Text text = {""};
    for (int i = 0; i < table->rows * table->columns; i++) used[table->cell[i].source] = true;
    for (int s = SOURCE_NONE + 1; s < SOURCES; s++)
        if (used[s])
            text_add(&text, "%s%s %s", *text.text ? ", " : "", source_marks[s], source_names[s]);
    if (*text.text) fprintf(out, "\n%s\n", text.text);
}

/* ---- terminal -------------------------------------------------------------------------------- */

enum { WIDTH = 98 }; /* of titles and notes */

/* Counts the characters of a text in UTF-8: the bytes that begin one. */
static int width_of(const char *text) {
    int width = 0;
    for (; *text; text++) width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

/* The two lines above the rows, and the column of labels. */
enum { HEAD = -2, UNIT = -1, LABEL = -1 };

/* What a line has in a column; a number has its mark behind it, over which a head may extend. */
static Text text_at(const Table *table, int row, int column) {
    if (column == LABEL)
        return text_of("%s", row >= 0 ? table->label[row] : row == HEAD ? table->row_head : "");
    const TableColumn *c = &table->column[column];
    if (row < 0) return text_of("%s", row == HEAD ? c->head : c->unit);
    Text text = table_format(table, row, column);
    if (is_marked(table, column))
        text_add(&text, "%2s", source_marks[table->cell[row * table->columns + column].source]);
    return text;
}

static int column_width(const Table *table, int column) {
    int max = 0;
    for (int r = HEAD; r < table->rows; r++) {
        const int width = width_of(text_at(table, r, column).text);
        if (width > max) max = width;
    }
    return max;
}

/* Aligns a text to the right in `width` characters; to the left if that is negative. */
static void add(Text *line, const char *text, int width) {
    int unseen = (int)strlen(text) - width_of(text); /* printf counts bytes */
    text_add(line, "%*s", width < 0 ? width - unseen : width + unseen, text);
}

typedef struct {
    int label, column[TABLE_COLUMNS];
    int begin, end; /* range of columns in the current block */
} Widths;

/* Returns the end of the block from `begin` on that fits next to the labels, at least a column. */
static int block_end(const Table *table, const Widths *width) {
    enum { MAX = 100 };
    int end = width->begin, used = width->label;
    for (; end < table->columns; end++) {
        used += 2 + width->column[end];
        if (used > MAX && end > width->begin) break;
    }
    return end;
}

/* Prints a line without trailing blanks. */
static void print_row(FILE *out, const Table *table, int row, const Widths *width) {
    Text line = {""};
    add(&line, text_at(table, row, LABEL).text, -width->label);
    for (int c = width->begin; c < width->end; c++)
        add(&line, text_at(table, row, c).text, 2 + width->column[c]);
    size_t length = strlen(line.text);
    while (length && line.text[length - 1] == ' ') length--;
    fprintf(out, "%.*s\n", (int)length, line.text);
}

static void print_rule(FILE *out, const Widths *width) {
    for (int i = 0; i < width->label; i++) putc('-', out);
    for (int c = width->begin; c < width->end; c++) {
        fputs("  ", out);
        for (int i = 0; i < width->column[c]; i++) putc('-', out);
    }
    putc('\n', out);
}

static int print_notes(FILE *out, const Table *table) {
    for (int n = 0; n < table->notes; n++) print_wrapped(out, table->note[n], 0, WIDTH);
    putc('\n', out);
    return 0;
}

int table_print(FILE *out, const Table *table) {
    Widths width = {.label = column_width(table, LABEL)};
    if (table->failed) return -1;
    print_wrapped(out, table->title, 0, WIDTH);
    if (table->timeline) return print_notes(out, table);
    for (int c = 0; c < table->columns; c++) width.column[c] = column_width(table, c);
    putc('\n', out);
    do { /* blocks of columns, one below the other */
        if (width.begin) putc('\n', out);
        width.end = block_end(table, &width);
        bool units = false;
        for (int c = width.begin; c < width.end; c++) units |= *table->column[c].unit != 0;
        print_row(out, table, HEAD, &width);
        if (units) print_row(out, table, UNIT, &width);
        print_rule(out, &width);
        for (int r = 0; r < table->rows; r++) print_row(out, table, r, &width);
        width.begin = width.end;
    } while (width.end < table->columns);
    print_legend(out, table);
    return print_notes(out, table);
}
