/* The register tile that matmul and conv2d share, and the packing of its operands. */
#pragma once

#include <string.h>

#include "simd.h"

/* For a convolution with fewer multiply-adds, some microseconds of work, waking other threads costs
 * more than it saves. */
#define WORTH_THREADS_CONV2D 2e5

INLINE void tile_zero(vec *acc, const int vectors) {
    UNROLL
    for (int i = 0; i < vectors; i++) acc[i] = (vec){0};
}

/* acc[rows][columns] += sum over p < depth of a(p, row) b(p, column): for each p an outer product
 * of rows = runs * run numbers and columns = vectors * LANES numbers, which are read from
 *
 *     a(p, row)    = a[p * a_step + row / run * a_run + row % run]
 *     b(p, column) = b[p * b_step + column]
 *
 * runs, run and vectors must be constants where this is inlined, so that the loops unroll and acc
 * lives in registers.  Each element is one chain of multiply-adds in the order of p, so its bits do
 * not depend on the shape of the tile. */
INLINE void tile_multiply(vec *acc, const int runs, const int run, const int vectors, const real *a,
                          ptrdiff_t a_run, ptrdiff_t a_step, const real *b, ptrdiff_t b_step,
                          int depth) {
    for (int p = 0; p < depth; p++, a += a_step, b += b_step) {
        vec w[2];
        UNROLL
        for (int j = 0; j < vectors; j++) {
            w[j] = vec_load(b + j * LANES);
            IN_REGISTER(w[j]);
        }
        UNROLL
        for (int i = 0; i < runs * run; i++) {
            UNROLL
            for (int j = 0; j < vectors; j++)
                acc[i * vectors + j] += a[i / run * a_run + i % run] * w[j];
        }
    }
}

/* Where a tile is stored: row i starts at at + i / run * run_step + i % run * step. */
typedef struct {
    real *at;
    ptrdiff_t step, run_step;
    int runs, run, columns; /* the part of the tile that lies inside the result */
    bool add;               /* accumulate */
    const real *bias;       /* [columns], added to every row; NULL: none */
} TileTarget;

INLINE void store_row(const TileTarget *to, real *at, const vec *acc, const int vectors) {
    UNROLL
    for (int j = 0; j < vectors; j++) {
        vec sum = acc[j];
        if (to->add) sum += vec_load(at + j * LANES);
        if (to->bias) sum += vec_load(to->bias + j * LANES);
        vec_store(at + j * LANES, sum);
    }
}

/* Stores a row of which only to->columns numbers exist. */
INLINE void store_part(const TileTarget *to, real *at, const vec *acc, const int vectors) {
    size_t bytes = (size_t)to->columns * sizeof *at;
    real row[2 * LANES] = {0}, bias[2 * LANES] = {0};
    TileTarget copy = *to;
    if (to->add) memcpy(row, at, bytes);
    if (to->bias) copy.bias = memcpy(bias, to->bias, bytes);
    store_row(&copy, row, acc, vectors);
    memcpy(at, row, bytes);
}

INLINE void tile_store(const TileTarget *to, const vec *acc, const int runs, const int run,
                       const int vectors) {
    if (to->columns == vectors * LANES) {
        UNROLL
        for (int i = 0; i < runs * run; i++)
            if (i / run < to->runs && i % run < to->run)
                store_row(to, to->at + i / run * to->run_step + i % run * to->step,
                          acc + i * vectors, vectors);
    } else {
        vec tile[TILE_VECTORS]; /* a variable index would put acc itself into memory */
        UNROLL
        for (int i = 0; i < runs * run * vectors; i++) tile[i] = acc[i];
        for (int i = 0; i < runs * run; i++)
            if (i / run < to->runs && i % run < to->run)
                store_part(to, to->at + i / run * to->run_step + i % run * to->step,
                           tile + i * vectors, vectors);
    }
}

/* An operand of a product.  Its lines are the rows of the left factor or the columns of the right
 * one; element (line, depth) is from[line * line_step + depth * depth_step], and one of the steps
 * is 1. */
typedef struct {
    const real *from;
    ptrdiff_t line_step, depth_step;
} Operand;

/* ---- packing: panels of `width` lines, element (i, p) at p * width + i; 0 for the rest ---- */

/* Lines that lie next to each other in memory: depth copies of `width` numbers. */
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

/* Lines that run along the depth are transposed, LANES x LANES at a time.  Stores are whole vectors
 * and may spill into the next row of the panel, so the loops are ordered such that these numbers
 * are stored later.  The last store spills past the panel's end. */
INLINE void pack_transposed(real *to, const int width, const real *from, ptrdiff_t line_step,
                            int lines, int depth) {
    for (int i = (width - 1) / LANES * LANES; i >= 0; i -= LANES) {
        int rows = min(lines - i, LANES), first = i;
        if (rows <= 0) rows = first = 0; /* only padding */
        for (int p = 0; p < depth; p += LANES)
            transpose_tile(to + (ptrdiff_t)p * width + i, width, from + first * line_step + p,
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
