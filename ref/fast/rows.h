/* How ops divide large arrays among threads.  The division depends only on the shape, so every
 * element and every sum has the same bits on any number of threads. */
#pragma once

#include "../real.h"

/* For fewer elements, starting the threads (about 2 us) costs more than they save. */
enum { WORTH_THREADS = 1 << 15 };

static inline int min(int a, int b) { return a < b ? a : b; }

enum {
    SUM_COLUMNS = 64, /* the most columns in one call of a RowSum */
    SUM_ROWS = 256,   /* the most rows in one call, which may sum them in `real` */
    SUM_WIDTH = 1024  /* the most columns in one call of rows_sum */
};

/* Adds rows [first, end) of column `column` + j to sums[quantity * SUM_COLUMNS + j], for j < width.
 * width <= SUM_COLUMNS, end - first <= SUM_ROWS. */
typedef void RowSum(double *sums, const void *arguments, int first, int end, int column, int width);

/* Overwrites totals[quantity * SUM_WIDTH + j] with the sum over all rows of column `column` + j,
 * for one or two quantities and j < width <= SUM_WIDTH. */
void rows_sum(double *totals, int quantities, int rows, int column, int width, RowSum *sum,
              const void *arguments);
