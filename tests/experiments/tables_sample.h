/* Tables for the tests of tables and of what prints them. */
#pragma once

#include "../../experiments/tables/table.h"

/* Creates two tables with known contents; the second has a figure. */
Tables sample_tables(void);

/* Returns the number of a cell, which must come from the given source; NAN after a failed CHECK. */
double number_in(const Tables *tables, const char *table, const char *row, const char *column,
                 Source source);
