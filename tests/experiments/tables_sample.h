/* For tests of tables and of what makes them. */
#pragma once

#include "../../experiments/tables/table.h"

/* Two tables made by hand; the second is drawn. */
Tables sample_tables(void);

/* The number of a cell, which must come from there; NAN after a failed CHECK. */
double number_in(const Tables *tables, const char *table, const char *row, const char *column,
                 Source source);
