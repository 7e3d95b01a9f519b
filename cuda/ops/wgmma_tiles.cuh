/* Products of bf16 tiles by the tensor cores of Hopper, a warpgroup (four warps) at a time.  The
 * two products are those of tiles.cuh, with 64 rows a warpgroup and accumulators laid out as there:
 *
 *   multiply_rows   c = a b^T    a[64][D], b[8 N][D] in shared memory
 *   multiply_sums   c += p b     p[64][8 N] in accumulators, b[8 N][D] in shared memory
 *
 * A tile of `rows` rows lies in shared memory as panels of 64 columns.  A panel has 128 bytes a
 * row, eight chunks of 16 bytes, of which chunk i of row r lies at place i ^ (r % 8).  This is the
 * "128-byte swizzle" of the PTX ISA: eight rows of one chunk lie in different banks, and so do the
 * eight chunks of one row, so that the hardware reads a tile by rows and by columns equally fast.
 * Panels begin at multiples of 1,024 bytes, eight rows. */
#pragma once

#include "tiles.cuh"

enum { PANEL = 64, SWIZZLED_ROWS = 8, SWIZZLED_BYTES = SWIZZLED_ROWS * PANEL * 2 };

/* Returns the first address at or after p where a panel may begin. */
static DEVICE __nv_bfloat16 *first_panel(void *p) {
    const unsigned past = shared_address(p) % SWIZZLED_BYTES;
    return (__nv_bfloat16 *)((char *)p + (SWIZZLED_BYTES - past) % SWIZZLED_BYTES);
}

/* Starts copying ROWS of the t rows of D numbers at `from`, `stride` apart, from `first` on, into
 * tile[ROWS]; zeros beyond the last.  All THREADS of the block must call it.  Rows are aligned to
 * 16 bytes. */
template <int D, int ROWS, int THREADS>
static DEVICE void load_swizzled(__nv_bfloat16 *tile, const __nv_bfloat16 *from, int stride,
                                 int first, int t) {
    constexpr int CHUNKS = D / 8;
    from += (size_t)first * stride;
#pragma unroll 2
    for (int i = (int)threadIdx.x; i < ROWS * CHUNKS; i += THREADS) {
        const int row = i / CHUNKS, chunk = i % CHUNKS;
        const bool inside = first + row < t;
        copy_async16(tile + (chunk / 8 * ROWS + row) * PANEL + (chunk % 8 ^ row % 8) * 8,
                     from + (inside ? (size_t)row * stride + (size_t)chunk * 8 : 0), inside);
    }
}

/* Waits for this thread's copies, and shows them to the tensor cores; a barrier must follow. */
static DEVICE void wait_for_copies(void) {
    copy_async_wait<0>();
    async_proxy_fence();
}

/* Returns the descriptor of a matrix that begins at `p` in a tile (PTX ISA, "Matrix Descriptor
 * Format").  It holds, in units of 16 bytes, the address, the distance from one panel to the next
 * (used only for matrices that are read by columns) and that from eight rows to the next eight; and
 * the kind of swizzle. */
static DEVICE uint64_t matrix_at(const __nv_bfloat16 *p, int panel_bytes) {
    const uint64_t swizzle_128 = 1;
    return swizzle_128 << 62 | (uint64_t)(SWIZZLED_BYTES / 16) << 32 |
           (uint64_t)(panel_bytes / 16) << 16 | (shared_address(p) & 0x3ffffu) >> 4;
}

/* Begins c += a b^T.  a: the warpgroup's first row in a tile of A_ROWS; b: a tile of 8 N rows. */
template <int D, int A_ROWS, int N>
static DEVICE void begin_rows(float (&c)[N][4], const __nv_bfloat16 *a, const __nv_bfloat16 *b) {
#pragma unroll
    for (int k = 0; k < D; k += 16) {
        const int panel = k / PANEL, within = k % PANEL;
        wgmma_rows(c, matrix_at(a + panel * A_ROWS * PANEL + within, 0),
                   matrix_at(b + panel * 8 * N * PANEL + within, 0));
    }
}

/* c = a b^T */
template <int D, int A_ROWS, int N>
static DEVICE void multiply_rows(float (&c)[1][N][4], const __nv_bfloat16 *a,
                                 const __nv_bfloat16 *b) {
    clear(c);
    wgmma_begin(c[0]);
    begin_rows<D, A_ROWS>(c[0], a, b);
    wgmma_end(c[0]);
}

/* c = a b^T and d = e f^T, both in flight together. */
template <int D, int A_ROWS, int N>
static DEVICE void multiply_rows_twice(float (&c)[1][N][4], const __nv_bfloat16 *a,
                                       const __nv_bfloat16 *b, float (&d)[1][N][4],
                                       const __nv_bfloat16 *e, const __nv_bfloat16 *f) {
    clear(c);
    clear(d);
    wgmma_begin(c[0]);
    wgmma_begin(d[0]);
    begin_rows<D, A_ROWS>(c[0], a, b);
    begin_rows<D, A_ROWS>(d[0], e, f);
    wgmma_end(c[0]); /* of all that has begun */
    wgmma_pin(d[0]);
}

/* c += p b, with the accumulators p rounded to bf16 as they lie.  b: a tile of 8 N rows. */
template <int D, int N>
static DEVICE void multiply_sums(float (&c)[1][D / 8][4], const float (&p)[1][N][4],
                                 const __nv_bfloat16 *b) {
    unsigned left[N / 2][4];
#pragma unroll
    for (int j = 0; j < N / 2; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            left[j][i] =
                pack_bf16(p[0][2 * j + i / 2][i % 2 * 2], p[0][2 * j + i / 2][i % 2 * 2 + 1]);
    wgmma_pin(left);
    wgmma_begin(c[0]);
#pragma unroll
    for (int j = 0; j < N / 2; j++)
        wgmma_sums(c[0], left[j], matrix_at(b + j * 16 * PANEL, 8 * N * PANEL * 2));
    wgmma_end(c[0]);
    wgmma_pin(left);
}
