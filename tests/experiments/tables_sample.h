/* Two tables made by hand, for the tests of tables and reports; the second is drawn. */
#ifndef TESTS_EXPERIMENTS_TABLES_SAMPLE_H
#define TESTS_EXPERIMENTS_TABLES_SAMPLE_H

#include "../../experiments/tables/table.h"

/* Aborts when memory runs out. */
Tables sample_tables(void);

#endif
