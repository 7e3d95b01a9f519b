/* A table as data: every number with its source.  Experiments that are no trainings fill such
 * tables; they are printed, written as HDF5 and read back by `bcd report` from here alone.
 *
 * A table remembers its first failure (memory, too many columns); later calls are skipped, and
 * tables_write and table_print report it.  So filling tables is a list of plain calls. */
#ifndef EXPERIMENTS_TABLE_H
#define EXPERIMENTS_TABLE_H

#include <stdio.h>

#include "../../ref/error.h" /* BCD_PRINTF */
#include "../cli/options.h"
#include "../store/provenance.h"

#define MIB (1024.0 * 1024)
#define GIB (1024.0 * 1024 * 1024)

/* Where a number comes from. */
typedef enum {
    SOURCE_NONE,      /* what the row is about: a name, a price, a ratio of two cells next to it */
    SOURCE_GIVEN,     /* a data sheet, or the command line */
    SOURCE_MEASURED,  /* by this program */
    SOURCE_SIMULATED, /* by dist/simulate.h */
    SOURCE_CLOSED_FORM, /* computed from shapes */
    SOURCE_RECOMPUTED,  /* from other published numbers */
    SOURCE_PUBLISHED,
    SOURCES
} Source;

extern const char *const source_names[SOURCES]; /* "measured"; "" for none */
extern const char *const source_marks[SOURCES]; /* "m" */

typedef enum {
    COLUMN_NUMBER,
    COLUMN_PERCENT,   /* a fraction, shown as "53.6 %" */
    COLUMN_DEVIATION, /* likewise, with its sign: "+0.2 %" */
    COLUMN_TEXT
} ColumnKind;

enum { DECIMALS_FREE = -1 };

typedef struct {
    char name[48]; /* of the data set: letters, digits and _ */
    char head[48]; /* above the column */
    char unit[24]; /* below that: its unit, or what else tells it from its neighbours; or "" */
    ColumnKind kind;
    int decimals; /* digits after the point; DECIMALS_FREE: as many as the number has */
    Source
        source; /* where its cells come from, unless one of them says otherwise; not in the file */
} TableColumn;

typedef struct {
    double value;  /* NAN: empty, or a text */
    double spread; /* of a mean: standard deviation of a single one; NAN: none */
    Source source;
    char text[H5_NAME]; /* of a COLUMN_TEXT */
} Cell;

/* How the page draws a table: the rows along the x axis with a line or a bar for each numeric
 * column, or tasks along the time (timeline.h). */
typedef enum { FIGURE_NONE, FIGURE_LINES, FIGURE_BARS, FIGURE_TIMELINE, FIGURE_SHAPES } FigureShape;

enum { TABLE_COLUMNS = 16, TABLE_NOTES = 24, TABLE_NOTE = 400, TABLES_MAX = 40 };

typedef struct {
    char name[48];      /* of its group in the file */
    char title[160];    /* "Table 8: memory of a full update" */
    char row_head[48];  /* above the labels */
    FigureShape figure; /* and what its axis says, e.g. "ms per iteration" */
    char axis[64];
    char unit[24]; /* in the file, of numbers whose columns say something else below their heads */
    int notes, columns, rows, capacity;
    char note[TABLE_NOTES][TABLE_NOTE]; /* below the table, a paragraph each */
    TableColumn column[TABLE_COLUMNS];
    char (*label)[H5_NAME]; /* [rows] */
    Cell *cell;             /* [rows][columns] */
    bool failed;
} Table;

/* What one file holds. */
typedef struct {
    Provenance provenance;
    int tables;
    Table *table[TABLES_MAX];
    Table lost; /* takes what there is no memory for; failed then */
} Tables;

/* Appends a table without rows.  Where memory runs out, or there are too many, what is returned has
 * failed. */
Table *tables_add(Tables *tables, const char *name, const char *title, const char *row_head,
                  const TableColumn *columns, int count);
void tables_free(Tables *tables);
/* Whether one of them has failed; the error says why. */
bool tables_failed(const Tables *tables);

/* What was to be filled in could not be computed, as the error says. */
void table_fail(Table *table);

void table_note(Table *table, const char *format, ...) BCD_PRINTF(2, 3);
/* Starts a row of empty cells; what follows goes into it. */
void table_row(Table *table, const char *format, ...) BCD_PRINTF(2, 3);
/* Fills cells from column `first` on, one for each value, with their columns' sources; NAN leaves a
 * cell empty. */
#define table_put(table, first, ...)                                                     \
    table_put_all(table, first, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), \
                  (const double[]){__VA_ARGS__})
void table_put_all(Table *table, int first, int count, const double *values);
void table_number(Table *table, int column, double value, Source source);
/* A mean with its spread; NAN: none. */
void table_mean(Table *table, int column, double value, double spread, Source source);
void table_text(Table *table, int column, Source source, const char *format, ...) BCD_PRINTF(4, 5);

/* By name; NULL where there is none. */
const Table *tables_find(const Tables *tables, const char *name);
const Cell *table_find(const Table *table, const char *label, const char *column);

/* Lines of at most 98 columns, broken at spaces. */
void print_wrapped(FILE *out, const char *text);

/* ---- table_print.c --------------------------------------------------------------------------- */

/* A cell as shown, without its mark; "" for an empty one; a spread behind " +- ", or what one wants
 * there.  Returns `text`. */
enum { TABLE_CELL = H5_NAME };
#define PLUS_MINUS " \u00B1 " /* where any character can be shown */
const char *table_format_with(const Table *table, int row, int column, const char *plus_minus,
                              char text[TABLE_CELL]);
const char *table_format(const Table *table, int row, int column, char text[TABLE_CELL]);

/* Title, aligned columns with a mark behind each number, notes wrapped to 98 columns, legend.
 * Columns for which 100 are too few stand in a block of their own below, the labels again before
 * them. */
int table_print(FILE *out, const Table *table);
/* The same as a table of Markdown. */
int table_print_markdown(FILE *out, const Table *table);

/* ---- table_file.c ----------------------------------------------------------------------------
 *
 *   /                  attributes  format "bcd tables", version 1
 *   /provenance        attributes  as in run.h5
 *   /settings          attributes  the flags that were given, as text
 *   /tables/T          attributes  title, head, notes (a line each), number (their order), figure,
 *                                  axis, checksum (FNV-1a over words and cells)
 *   /tables/T/row      labels [rows]: the dimension scale of what follows
 *   /tables/T/C        [rows] column C; attributes unit (if it has one), head, kind, decimals,
 *                             number, below (what is shown below the head, if not the unit)
 *   /tables/T/C_source [rows] where each of its numbers comes from; "" for none
 *   /tables/T/C_spread [rows] where C has means over seeds: the standard deviation of a single one,
 *                             in C's unit; NAN for none */

/* What lies in /tables, into a file that is being written. */
void tables_store(H5File *file, const Tables *tables);
/* Writes the file whole, or leaves the old one as it was.  `options`: whose flags go into
 * /settings.  -1 and an error. */
int tables_write(const Tables *tables, const Options *options, const char *path);
/* Fills `tables`, which is empty before.  -1 and an error; tables_free is safe either way. */
int tables_read(Tables *tables, const char *path);
extern const char tables_format[]; /* what h5_format says of such a file */

#endif
