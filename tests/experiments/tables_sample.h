/* Tables for the tests of tables and of what prints them. */
#pragma once

#include "../../experiments/tables/table.h"

/* Creates two tables with known contents; the second has a figure. */
Tables sample_tables(void);

/* Reads a scratch file of tables, for tables_free.  Returns false after a failed CHECK. */
bool read_tables(Tables *tables, const char *name);

/* Find by name; NULL when there is none. */
const Table *tables_find(const Tables *tables, const char *name);
const Cell *table_find(const Table *table, const char *label, const char *column);

/* Returns the number of a cell; NAN after a failed CHECK. */
double cell(const Tables *tables, const char *table, const char *row, const char *column);
