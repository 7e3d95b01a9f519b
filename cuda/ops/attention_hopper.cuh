/* Version 3 of attention, for bf16 heads of 64 and 128 on compute capability 9.0: version 2 with
 * the products of wgmma_tiles.cuh.
 *
 * What changes: 64 rows belong to a warpgroup instead of 16 or 32 to a warp, and the tensor cores
 * read tiles from shared memory themselves, where version 2 loads each fragment into registers of
 * each warp.  So a number is read once for 64 rows, which mma.sync cannot do.  The warps of a group
 * wait for each product; meanwhile those of other groups compute their exponentials. */
#pragma once

#include "attention_tiles.cuh"
#include "wgmma_tiles.cuh"

/* A block has GROUPS warpgroups, as many as there are registers for.  BLOCKS blocks fit on a
 * multiprocessor. */
template <int D_, int GROUPS, int BLOCKS_>
struct Warpgroups {
    typedef __nv_bfloat16 T;
    typedef const T *Left;
    static constexpr int D = D_, M = 1, COLUMNS = 64, N = COLUMNS / 8, BLOCKS = BLOCKS_;
    static constexpr int THREADS = 128 * GROUPS, ROWS = 64 * GROUPS;
    static constexpr int SIDE = ROWS * D, TILE = COLUMNS * D, UNIT = 64, UNIT_THREADS = 128;
    static constexpr size_t MAX_BYTES = 227 << 10;
    static constexpr bool HELD = false, IN_PAIRS = true;

    /* Enough for the tiles, and for the rows of results that are written over them at the end; with
     * room to align either to a panel. */
    static constexpr size_t bytes(int sides) {
        constexpr size_t results = (size_t)ROWS * ROW<float, D> * sizeof(float);
        const size_t tiles = (size_t)(sides * SIDE + 4 * TILE) * sizeof(T);
        return (tiles > results ? tiles : results) + SWIZZLED_BYTES;
    }
    static DEVICE T *first(void *shared) { return first_panel(shared); }
    static DEVICE void load_side(T *tile, const T *head, int stride, int row, const Heads<T> &h) {
        load_swizzled<D, ROWS, THREADS>(tile, head, stride, row, h.t);
    }
    static DEVICE void load_step(T *tile, const T *head, int stride, int row, const Heads<T> &h) {
        load_swizzled<D, COLUMNS, THREADS>(tile, head, stride, row, h.t);
    }
    static DEVICE void wait(void) { wait_for_copies(); }
    static DEVICE void take(Left &left, const T *side) {
        left = side + 64 * ((int)threadIdx.x / 128) * PANEL;
    }
    static DEVICE void dots(float (&c)[1][N][4], Left left, const T *b) {
        multiply_rows<D, ROWS>(c, left, b);
    }
    /* Two such products in flight together. */
    static DEVICE void dots(float (&c)[1][N][4], Left left, const T *b, float (&d)[1][N][4],
                            Left other, const T *e) {
        multiply_rows_twice<D, ROWS>(c, left, b, d, other, e);
    }
    static DEVICE void sums(float (&c)[1][D / 8][4], const float (&p)[1][N][4], const T *b) {
        multiply_sums<D>(c, p, b);
    }
};
