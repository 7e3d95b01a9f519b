/* C = op(A) op(B), by the blocking of Goto and van de Geijn, "Anatomy of high-performance matrix
 * multiplication", ACM TOMS 2008:
 *
 *   for blocks of columns of C              (BLOCK_COLUMNS, its part of B stays in the L3 cache)
 *     for blocks of the summed dimension    (BLOCK_DEPTH)
 *       pack B's part into panels of tile_columns columns, zero-padded
 *       for blocks of rows                  (BLOCK_ROWS, its part of A stays in the L2 cache)
 *         pack A's part into panels of tile_rows rows, zero-padded
 *         for each panel of A, for each panel of B: one register tile of C
 *
 * Packing makes every transposition and stride look the same to the register tile, which is the
 * only place where numbers are multiplied.
 *
 * Threads divide the longer side of C, never the summed dimension, and share nothing.  An element
 * is a chain of multiply-adds over each block of the summed dimension, and the chains are added in
 * order, so its bits depend only on k. */
#include "matmul.h"

#include <omp.h>
#include <string.h>

#include "../ops/ops.h"
#include "scratch.h"
#include "tile.h"

enum { BLOCK_DEPTH = 768, BLOCK_COLUMNS = 768, BLOCK_ROWS = 132 };

typedef struct {
    real *c;
    ptrdiff_t ldc;
    Operand a, b;
    const real *bias;
    int m, n, k;
    bool add;
} MatmulProduct;

/* Computes one register tile: `rows` of a packed panel of A times a packed panel of B. */
INLINE void multiply_tile(const TileTarget *to, const int rows, const int vectors, const real *a,
                          int a_step, const real *b, int depth) {
    vec acc[TILE_VECTORS];
    tile_zero(acc, rows * vectors);
    tile_multiply(acc, 1, rows, vectors, a, 0, a_step, b, vectors * LANES, depth);
    tile_store(to, acc, 1, rows, vectors);
}

/* Computes the block of C at (i0, j0), rows x columns, from packed panels.  Only the tiles at the
 * lower edge have fewer rows; a shorter tile saves the work on the padding. */
INLINE void multiply_block(const MatmulProduct *product, const int vectors, const real *a,
                           const real *b, int i0, int rows, int j0, int columns, int start,
                           int depth) {
    const int height = TILE_VECTORS / vectors, width = vectors * LANES;
    for (int j = 0; j < columns; j += width, b += (ptrdiff_t)width * depth) {
        const real *panel = a;
        for (int i = 0; i < rows; i += height, panel += (ptrdiff_t)height * depth) {
            TileTarget to = {.at = product->c + (i0 + i) * product->ldc + j0 + j,
                             .step = product->ldc,
                             .runs = 1,
                             .run = min(height, rows - i),
                             .columns = min(width, columns - j),
                             .add = product->add || start > 0,
                             .bias = product->bias && start == 0 ? product->bias + j0 + j : NULL};
            if (to.run > height * 2 / 3)
                multiply_tile(&to, height, vectors, panel, height, b, depth);
            else if (to.run > height / 3)
                multiply_tile(&to, height * 2 / 3, vectors, panel, height, b, depth);
            else
                multiply_tile(&to, height / 3, vectors, panel, height, b, depth);
        }
    }
}

/* Computes rows [i0, i1) and columns [j0, j1) of C, with tiles of `vectors` vectors. */
INLINE void multiply_part(const MatmulProduct *product, const int vectors, int i0, int i1, int j0,
                          int j1) {
    const int height = TILE_VECTORS / vectors, width = vectors * LANES;
    const int block_rows = BLOCK_ROWS / height * height;
    int max_depth = min(product->k, BLOCK_DEPTH);
    int max_rows = (min(i1 - i0, block_rows) + height - 1) / height * height;
    int max_columns = (min(j1 - j0, BLOCK_COLUMNS) + width - 1) / width * width;
    real *a = scratch(SCRATCH_PACK_A, (size_t)max_rows * (size_t)max_depth + LANES);
    real *b = scratch(SCRATCH_PACK_B, (size_t)max_columns * (size_t)max_depth + LANES);
    for (int j = j0; j < j1; j += BLOCK_COLUMNS) {
        int columns = min(BLOCK_COLUMNS, j1 - j);
        for (int p = 0; p < product->k; p += BLOCK_DEPTH) {
            int depth = min(BLOCK_DEPTH, product->k - p);
            pack(b, width, product->b, j, columns, p, depth);
            for (int i = i0; i < i1; i += block_rows) {
                int rows = min(block_rows, i1 - i);
                pack(a, height, product->a, i, rows, p, depth);
                multiply_block(product, vectors, a, b, i, rows, j, columns, p, depth);
            }
        }
    }
}

/* Returns the first of the `length` lines that belong to thread t of `threads`, in whole tiles. */
static int share(int length, int tile, int t, int threads) {
    int64_t tiles = (length + tile - 1) / tile;
    return min(length, (int)(tiles * t / threads) * tile);
}

static void multiply(const MatmulProduct *product) {
    const double worth_threads = 1e5; /* multiply-adds, about ten microseconds */
    bool serial = omp_in_parallel() || (double)product->m * product->n * product->k < worth_threads;
#pragma omp parallel if (!serial)
    {
        int t = serial ? 0 : omp_get_thread_num(), threads = serial ? 1 : omp_get_num_threads();
        int i0 = 0, i1 = product->m, j0 = 0, j1 = product->n;
        if (product->m >= product->n) {
            i0 = share(product->m, TILE_VECTORS, t, threads);
            i1 = share(product->m, TILE_VECTORS, t + 1, threads);
        } else {
            j0 = share(product->n, 2 * LANES, t, threads);
            j1 = share(product->n, 2 * LANES, t + 1, threads);
        }
        if (product->n <= LANES)
            multiply_part(product, 1, i0, i1, j0, j1);
        else
            multiply_part(product, 2, i0, i1, j0, j1);
    }
}

/* Describes a matrix whose lines are its rows, or its columns. */
static Operand operand(const real *from, ptrdiff_t ld, bool lines_are_rows) {
    return lines_are_rows ? (Operand){from, ld, 1} : (Operand){from, 1, ld};
}

void matmul(real *c, ptrdiff_t ldc, const real *a, ptrdiff_t lda, bool transpose_a, const real *b,
            ptrdiff_t ldb, bool transpose_b, const real *bias, int m, int n, int k, bool add) {
    multiply(&(MatmulProduct){c, ldc, operand(a, lda, !transpose_a), operand(b, ldb, transpose_b),
                              bias, m, n, k, add});
}
