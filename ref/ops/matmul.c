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
 * Threads take slabs of C over its longer side and share nothing, and the summed dimension is never
 * divided among them.  An element is a chain of multiply-adds over each block of the summed
 * dimension, and the sum of these chains in order: its bits depend on k alone. */
#include "matmul.h"

#include <omp.h>
#include <string.h>

#include "ops.h"
#include "scratch.h"
#include "simd.h"

enum { BLOCK_DEPTH = 768, BLOCK_COLUMNS = 768, BLOCK_ROWS = 132 };

/* One operand: element (line, depth) is at from[line * line_step + depth * depth_step], and one of
 * the steps is 1.  Lines are rows of op(A) and columns of op(B). */
typedef struct {
    const real *from;
    ptrdiff_t line_step, depth_step;
} Operand;

typedef struct {
    real *c;
    ptrdiff_t ldc;
    Operand a, b;
    const real *bias;
    int m, n, k;
    bool add;
} Product;

static int min(int a, int b) { return a < b ? a : b; }

/* A panel whose lines lie next to each other in memory: depth copies of `width` numbers. */
INLINE void pack_straight(real *to, const int width, const real *from, ptrdiff_t depth_step,
                          int lines, int depth) {
    if (lines == width) {
        for (int p = 0; p < depth; p++)
            memcpy(to + p * width, from + p * depth_step, (size_t)width * sizeof *to);
    } else {
        for (int p = 0; p < depth; p++)
            for (int i = 0; i < width; i++)
                to[p * width + i] = i < lines ? from[p * depth_step + i] : 0;
    }
}

/* A panel whose lines run along the depth: transposed, LANES x LANES at a time.  The stores are
 * whole vectors and may spill into the next row of the panel, so what they hit must be stored
 * later: hence the order of the loops.  The last one spills past the panel's end. */
INLINE void pack_transposed(real *to, const int width, const real *from, ptrdiff_t line_step,
                            int lines, int depth) {
    for (int i = (width - 1) / LANES * LANES; i >= 0; i -= LANES) {
        int rows = min(lines - i, LANES);
        for (int p = 0; p < depth; p += LANES)
            transpose_tile(to + (ptrdiff_t)p * width + i, width, from + i * line_step + p,
                           line_step, rows, min(LANES, depth - p));
    }
}

/* Lines [line, line + lines) over [start, start + depth) of the summed dimension: panel after panel
 * of `width` lines, element (i, p) of a panel at p * width + i, zero where there is no line. */
INLINE void pack(real *to, const int width, Operand operand, int line, int lines, int start,
                 int depth) {
    const real *from = operand.from + line * operand.line_step + start * operand.depth_step;
    for (int i = 0; i < lines; i += width) {
        if (operand.line_step == 1)
            pack_straight(to, width, from + i, operand.depth_step, min(width, lines - i), depth);
        else
            pack_transposed(to, width, from + i * operand.line_step, operand.line_step,
                            min(width, lines - i), depth);
        to += (ptrdiff_t)width * depth;
    }
}

/* Where a tile goes in C, and what is there already. */
typedef struct {
    real *c;
    ptrdiff_t ldc;
    const real *bias;
    int rows, columns; /* of the tile that lie inside C */
    bool add;
} Target;

INLINE void store_tile(const Target *to, const vec *acc, const int rows, const int vectors) {
    if (to->rows == rows && to->columns == vectors * LANES) {
#pragma GCC unroll 24
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
            for (int j = 0; j < vectors; j++) {
                real *c = to->c + i * to->ldc + j * LANES;
                vec sum = acc[i * vectors + j];
                if (to->add) sum += vec_load(c);
                if (to->bias) sum += vec_load(to->bias + j * LANES);
                vec_store(c, sum);
            }
        return;
    }
    real tile[TILE_VECTORS * LANES];
#pragma GCC unroll 24
    for (int i = 0; i < rows * vectors; i++) vec_store(tile + i * LANES, acc[i]);
    for (int i = 0; i < to->rows; i++)
        for (int j = 0; j < to->columns; j++) {
            real *c = to->c + i * to->ldc + j;
            real sum = tile[i * vectors * LANES + j];
            if (to->add) sum += *c;
            if (to->bias) sum += to->bias[j];
            *c = sum;
        }
}

/* One register tile: `rows` of a packed panel of A against a packed panel of B. */
INLINE void multiply_tile(const Target *to, const int rows, const int vectors, const real *a,
                          int a_step, const real *b, int depth) {
    vec acc[TILE_VECTORS];
#pragma GCC unroll 24
    for (int i = 0; i < rows * vectors; i++) acc[i] = (vec){0};
    tile_multiply(acc, rows, vectors, a, a_step, b, vectors * LANES, depth);
    store_tile(to, acc, rows, vectors);
}

/* The block of C at (i, j), rows x columns, from packed panels.  Only the tiles at the lower edge
 * have fewer rows; a shorter tile saves the work on the padding. */
INLINE void multiply_block(const Product *product, const int vectors, const real *a, const real *b,
                           int i0, int rows, int j0, int columns, int start, int depth) {
    const int height = TILE_VECTORS / vectors, width = vectors * LANES;
    for (int j = 0; j < columns; j += width, b += (ptrdiff_t)width * depth) {
        const real *panel = a;
        for (int i = 0; i < rows; i += height, panel += (ptrdiff_t)height * depth) {
            Target to = {product->c + (i0 + i) * product->ldc + j0 + j,
                         product->ldc,
                         product->bias && start == 0 ? product->bias + j0 + j : NULL,
                         min(height, rows - i),
                         min(width, columns - j),
                         product->add || start > 0};
            if (to.rows > height * 2 / 3)
                multiply_tile(&to, height, vectors, panel, height, b, depth);
            else if (to.rows > height / 3)
                multiply_tile(&to, height * 2 / 3, vectors, panel, height, b, depth);
            else
                multiply_tile(&to, height / 3, vectors, panel, height, b, depth);
        }
    }
}

/* The part of C with rows [i0, i1) and columns [j0, j1), with tiles of `vectors` vectors. */
INLINE void multiply_slab(const Product *product, const int vectors, int i0, int i1, int j0,
                          int j1) {
    const int height = TILE_VECTORS / vectors, width = vectors * LANES;
    int most_depth = min(product->k, BLOCK_DEPTH);
    int most_rows = (min(i1 - i0, BLOCK_ROWS) + height - 1) / height * height;
    int most_columns = (min(j1 - j0, BLOCK_COLUMNS) + width - 1) / width * width;
    real *a = scratch(SCRATCH_PACK_A, (size_t)most_rows * (size_t)most_depth + LANES);
    real *b = scratch(SCRATCH_PACK_B, (size_t)most_columns * (size_t)most_depth + LANES);
    for (int j = j0; j < j1; j += BLOCK_COLUMNS) {
        int columns = min(BLOCK_COLUMNS, j1 - j);
        for (int p = 0; p < product->k; p += BLOCK_DEPTH) {
            int depth = min(BLOCK_DEPTH, product->k - p);
            pack(b, width, product->b, j, columns, p, depth);
            for (int i = i0; i < i1; i += BLOCK_ROWS) {
                int rows = min(BLOCK_ROWS, i1 - i);
                pack(a, height, product->a, i, rows, p, depth);
                multiply_block(product, vectors, a, b, i, rows, j, columns, p, depth);
            }
        }
    }
}

static void multiply_narrow(const Product *product, int i0, int i1, int j0, int j1) {
    multiply_slab(product, 1, i0, i1, j0, j1);
}

static void multiply_wide(const Product *product, int i0, int i1, int j0, int j1) {
    multiply_slab(product, 2, i0, i1, j0, j1);
}

/* The first of `length` lines that belong to thread t of `threads`, in whole tiles. */
static int share(int length, int tile, int t, int threads) {
    int64_t tiles = (length + tile - 1) / tile;
    return min(length, (int)(tiles * t / threads) * tile);
}

static void multiply(const Product *product) {
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
            multiply_narrow(product, i0, i1, j0, j1);
        else
            multiply_wide(product, i0, i1, j0, j1);
    }
}

/* Lines are the rows of the operand as stored, or its columns. */
static Operand operand(const real *from, int ld, bool lines_are_rows) {
    return lines_are_rows ? (Operand){from, ld, 1} : (Operand){from, 1, ld};
}

void matmul(real *c, int ldc, const real *a, int lda, bool transpose_a, const real *b, int ldb,
            bool transpose_b, int m, int n, int k, bool add) {
    multiply(&(Product){c, ldc, operand(a, lda, !transpose_a), operand(b, ldb, transpose_b), NULL,
                        m, n, k, add});
}

void matmul_bias(real *c, int ldc, const real *a, int lda, bool transpose_a, const real *b, int ldb,
                 bool transpose_b, const real *bias, int m, int n, int k) {
    multiply(&(Product){c, ldc, operand(a, lda, !transpose_a), operand(b, ldb, transpose_b), bias,
                        m, n, k, false});
}
