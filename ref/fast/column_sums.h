/* How ops sum over the rows of large arrays.  The work is divided among threads by the shape alone,
 * so a sum has the same bits on any number of threads. */
#pragma once

#include "../base/real.h"

enum {
    SUM_COLUMNS = 64, /* the maximum in one call of a RowSum */
    SUM_ROWS = 256    /* the maximum in one call, which may sum them in `real` */
};

/* Adds rows [first, end) of column `column` + j to sums[quantity * SUM_COLUMNS + j], for j < width.
 * width <= SUM_COLUMNS, end - first <= SUM_ROWS. */
typedef void RowSum(double *sums, const void *arguments, int first, int end, int column, int width);

/* Returns [quantities][columns]: the sums of one or two quantities over all rows, in scratch of the
 * calling thread. */
double *column_sums(int quantities, int rows, int columns, RowSum *sum, const void *arguments);
