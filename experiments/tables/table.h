/* Tables whose numbers know where they come from.  They are printed, and written as HDF5; bcd
 * report (experiments/paper/tables.py) shows such files.
 *
 * A table remembers its first failure (a note too long, a step that cannot be simulated); later
 * calls do nothing, and tables_write and table_print return -1.  So the code that fills a table
 * needs no error checks. */
#pragma once

#include <stdio.h>

#include "../cli/command_line.h"
#include "../store/provenance.h"

#define MIB (1024.0 * 1024)
#define GIB (1024.0 * 1024 * 1024)

/* Where a number comes from. */
typedef enum {
    SOURCE_NONE,        /* a setting of the row, or a ratio of two cells next to it */
    SOURCE_GIVEN,       /* a data sheet, or the command line */
    SOURCE_MEASURED,    /* by this program */
    SOURCE_SIMULATED,   /* by dist/simulate.h */
    SOURCE_CLOSED_FORM, /* computed from shapes */
    SOURCE_PUBLISHED,
    SOURCES
} Source;

extern const char *const source_names[SOURCES]; /* "measured"; "" for none */
extern const char *const source_marks[SOURCES]; /* "m" */

typedef enum {
    COLUMN_NUMBER,
    COLUMN_PERCENT,   /* a fraction, printed as "53.6 %" */
    COLUMN_DEVIATION, /* a fraction, printed with its sign: "+0.2 %" */
    COLUMN_TEXT
} ColumnKind;

enum { DECIMALS_FREE = -1 };

enum { TABLE_NAME = 48 };
typedef struct {
    char name[TABLE_NAME]; /* of the data set: letters, digits and _ */
    char head[48];         /* printed above the column */
    char unit[24];         /* printed below the head: the unit, another qualifier, or "" */
    ColumnKind kind;
    int decimals;  /* digits after the point; DECIMALS_FREE: as many as the number has */
    Source source; /* of the cells that table_put fills; not stored in the file */
} TableColumn;

typedef struct {
    double value; /* NAN: empty, or a text */
    Source source;
    char text[H5_NAME]; /* of a COLUMN_TEXT */
} Cell;

enum {
    TABLE_COLUMNS = 16,
    TABLE_NOTES = 24,
    TABLE_NOTE = 400,
    TABLE_TITLE = 480,
    TABLES_MAX = 128
};

typedef struct {
    char name[TABLE_NAME];   /* of its group in the file */
    char title[TABLE_TITLE]; /* "Table 8: memory of a full update" */
    char row_head[48];       /* printed above the labels */
    bool timeline;           /* the page draws its rows as tasks along the time (plan/cluster.c) */
    char unit[24]; /* stored as the unit of number columns whose own `unit` is another qualifier */
    int notes, columns, rows, capacity;
    char note[TABLE_NOTES][TABLE_NOTE]; /* printed below the table, a paragraph each */
    TableColumn column[TABLE_COLUMNS];
    char (*label)[H5_NAME]; /* [rows] */
    Cell *cell;             /* [rows][columns] */
    bool failed;
} Table;

/* The tables of a file. */
typedef struct {
    Provenance provenance;
    int tables;
    Table *table[TABLES_MAX];
} Tables;

/* Appends a table without rows.  There may be TABLES_MAX tables, and TABLE_COLUMNS columns. */
Table *tables_add(Tables *tables, const char *name, const char *title, const char *row_head,
                  const TableColumn *columns, int count);
void tables_free(Tables *tables);
/* Appends columns to a table that has no rows yet. */
void table_columns(Table *table, const TableColumn *columns, int count);
/* Appends those of what the shapes say that a training keeps: parameters, gradients, state,
 * activations. */
enum { MEMORY_COLUMNS = 4 };
void table_memory_columns(Table *table, const char *unit, int decimals);
/* Returns true when a table has failed; an error is set. */
bool tables_failed(const Tables *tables);

/* Marks a table as failed because it could not be computed; the caller has set an error. */
void table_fail(Table *table);

void table_note(Table *table, const char *format, ...) BCD_PRINTF(2, 3);
/* Appends a row of empty cells with this label; the functions below fill the last row. */
void table_row(Table *table, const char *format, ...) BCD_PRINTF(2, 3);
/* Puts the values into the columns from `first` on, with the sources of the columns; NAN leaves a
 * cell empty. */
#define table_put(table, first, ...)                                                     \
    table_put_all(table, first, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), \
                  (const double[]){__VA_ARGS__})
void table_put_all(Table *table, int first, int count, const double *values);
void table_number(Table *table, int column, double value, Source source);
/* A text has no source. */
void table_text(Table *table, int column, const char *format, ...) BCD_PRINTF(3, 4);

/* ---- table_print.c --------------------------------------------------------------------------- */

/* A cell without its mark, such as "3.08 ± 0.29"; "" for an empty one. */
Text table_format(const Table *table, int row, int column);

/* Prints the title, aligned columns with a mark behind each number, the legend of the marks, and
 * the notes.  Columns that do not fit in 100 characters follow in a block below, with the labels
 * again.  Of a timeline, which the page draws, there are only the title and the notes. */
int table_print(FILE *out, const Table *table);

/* ---- table_file.c: tables as HDF5, as experiments/results/README.md describes them ----------- */

/* Writes the whole file, with the flags given in `options` as /settings, or leaves the old one as
 * it was, and returns -1 and an error. */
int tables_write(const Tables *tables, const CommandLine *line, const char *path);
extern const char tables_format[]; /* the `format` attribute of such a file */
