/* The compilers' vector type, at the width of the instruction set.  A vector wider than the
 * machine's is split into pieces that do not stay in registers (sixty times slower), so the width
 * must be the machine's own. */
#ifndef REF_OPS_SIMD_H
#define REF_OPS_SIMD_H

#include "../real.h"

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

enum {
    LANES = VECTOR_BYTES / sizeof(real),
/* Accumulators of a tile: most of the vector registers, the rest hold its operands. */
#if defined(__AVX512F__) || defined(__aarch64__)
    TILE_VECTORS = 24,
#else
    TILE_VECTORS = 12,
#endif
};

typedef real vec __attribute__((vector_size(VECTOR_BYTES)));
/* The same in memory, where rows start anywhere. */
typedef real vec_unaligned
    __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(real)), may_alias));

/* Before a loop of constant length, at most 24, that must disappear for its array to live in
 * registers. */
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 24")
#endif

#define INLINE static inline __attribute__((always_inline))

INLINE vec vec_load(const real *from) { return *(const vec_unaligned *)from; }
INLINE void vec_store(real *to, vec x) { *(vec_unaligned *)to = x; }

/* Which elements of two vectors, side by side, make a0 b0 a1 b1 ... of their lower and upper
 * halves. */
#if VECTOR_BYTES == 64 && !defined(BCD_DOUBLE)
#define INTERLEAVE_LOWER 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define INTERLEAVE_UPPER 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif VECTOR_BYTES == 64 || (VECTOR_BYTES == 32 && !defined(BCD_DOUBLE))
#define INTERLEAVE_LOWER 0, 8, 1, 9, 2, 10, 3, 11
#define INTERLEAVE_UPPER 4, 12, 5, 13, 6, 14, 7, 15
#elif VECTOR_BYTES == 32 || !defined(BCD_DOUBLE)
#define INTERLEAVE_LOWER 0, 4, 1, 5
#define INTERLEAVE_UPPER 2, 6, 3, 7
#else
#define INTERLEAVE_LOWER 0, 2
#define INTERLEAVE_UPPER 1, 3
#endif

/* to[j * to_step + i] = from[i * from_step + j] for i < rows <= LANES, j < columns <= LANES. Always
 * writes whole vectors of LANES, zero where i >= rows. */
INLINE void transpose_tile(real *to, ptrdiff_t to_step, const real *from, ptrdiff_t from_step,
                           int rows, int columns) {
    vec x[LANES], y[LANES];
    if (columns == LANES) {
        UNROLL
        for (int i = 0; i < LANES; i++) x[i] = i < rows ? vec_load(from + i * from_step) : (vec){0};
    } else {
        for (int i = 0; i < LANES; i++) {
            real row[LANES] = {0};
            for (int j = 0; i < rows && j < columns; j++) row[j] = from[i * from_step + j];
            x[i] = vec_load(row);
        }
    }
    /* Each round moves the top bit of the row number to the bottom of the column number; after
     * log2(LANES) rounds they have changed places. */
    UNROLL
    for (int round = 1; round < LANES; round *= 2) {
        UNROLL
        for (int i = 0; i < LANES / 2; i++) {
            y[2 * i] = __builtin_shufflevector(x[i], x[i + LANES / 2], INTERLEAVE_LOWER);
            y[2 * i + 1] = __builtin_shufflevector(x[i], x[i + LANES / 2], INTERLEAVE_UPPER);
        }
        UNROLL
        for (int i = 0; i < LANES; i++) x[i] = y[i];
    }
    if (columns == LANES) {
        UNROLL
        for (int j = 0; j < LANES; j++) vec_store(to + j * to_step, x[j]);
    } else {
        for (int j = 0; j < columns; j++) vec_store(to + j * to_step, x[j]);
    }
}

#endif
