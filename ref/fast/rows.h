/* How ops divide large arrays among threads: by the shape alone, so that every element and every
 * sum has the same bits whatever the number of threads. */
#ifndef REF_FAST_ROWS_H
#define REF_FAST_ROWS_H

#include "../real.h"

/* Elementwise ops walk blocks of BLOCK elements; below PARALLEL elements starting threads (about
 * 2 us) costs more than they save. */
enum { BLOCK = 4096, PARALLEL = 1 << 15 };

static inline int min(int a, int b) { return a < b ? a : b; }
static inline size_t block_size(size_t left) { return left < BLOCK ? left : BLOCK; }

enum {
    SUM_COLUMNS = 64, /* that a RowSum is asked for at once */
    SUM_ROWS = 256,   /* that it adds up in `real`; what is longer goes on in double */
    SUM_WIDTH = 1024, /* columns of one rows_sum */
    SUM_QUANTITIES = 2
};

/* Adds to sums[quantity * SUM_COLUMNS + j] what rows [first, end) contribute to the sums of column
 * + j, for j < width <= SUM_COLUMNS.  end - first <= SUM_ROWS. */
typedef void RowSum(double *sums, const void *arguments, int first, int end, int column, int width);

/* Overwrites totals[quantity * SUM_WIDTH + j] with the sums of one or two quantities over all rows,
 * for columns [column, column + width), width <= SUM_WIDTH. */
void rows_sum(double *totals, int quantities, int rows, int column, int width, RowSum *sum,
              const void *arguments);

#endif
