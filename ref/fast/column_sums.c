#include "column_sums.h"

#include <string.h>

#include "scratch.h"
#include "simd.h"

enum {
    WIDTH = 1024,    /* columns at a time */
    PARTIALS = 16384 /* partial sums of all chunks of these columns, on the stack: 128 KB */
};

/* Cuts rows into chunks and columns into tiles.  One thread sums each (chunk, tile) in the order of
 * its rows; then the chunks are added in their order. */
static void sum_part(double *totals, int quantities, int rows, int columns, int column, RowSum *sum,
                     const void *arguments) {
    const int width = min(WIDTH, columns - column), tile_sums = quantities * SUM_COLUMNS;
    const int tiles = (width + SUM_COLUMNS - 1) / SUM_COLUMNS;
    const int max = PARTIALS / (tiles * tile_sums);
    const int chunk_rows = (rows + max - 1) / max > SUM_ROWS ? (rows + max - 1) / max : SUM_ROWS;
    const int chunks = (rows + chunk_rows - 1) / chunk_rows;

    double partial[PARTIALS];
#pragma omp parallel for if ((ptrdiff_t)rows * width > WORTH_THREADS)
    for (int task = 0; task < chunks * tiles; task++) {
        double *sums = partial + task * tile_sums;
        const int chunk = task / tiles, left = task % tiles * SUM_COLUMNS;
        const int end = min((chunk + 1) * chunk_rows, rows);
        memset(sums, 0, (size_t)tile_sums * sizeof *sums);
        for (int row = chunk * chunk_rows; row < end; row += SUM_ROWS)
            sum(sums, arguments, row, min(row + SUM_ROWS, end), column + left,
                min(SUM_COLUMNS, width - left));
    }

    for (int q = 0; q < quantities; q++) {
        double *restrict total = totals + q * columns + column;
        for (int chunk = 0; chunk < chunks; chunk++)
            for (int j = 0; j < width; j++)
                total[j] += partial[(chunk * tiles + j / SUM_COLUMNS) * tile_sums +
                                    q * SUM_COLUMNS + j % SUM_COLUMNS];
    }
}

double *column_sums(int quantities, int rows, int columns, RowSum *sum, const void *arguments) {
    const size_t bytes = (size_t)quantities * (size_t)columns * sizeof(double);
    double *totals = (double *)(void *)scratch(SCRATCH_SUMS, bytes / sizeof(real));
    memset(totals, 0, bytes);
    for (int column = 0; column < columns; column += WIDTH)
        sum_part(totals, quantities, rows, columns, column, sum, arguments);
    return totals;
}
