/* The compilers' vector type, at the width of the instruction set.  A vector wider than the
 * machine's is split into pieces that do not stay in registers (sixty times slower), so the width
 * must be the machine's own. */
#pragma once

#include "../base/real.h"

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

static inline int min(int a, int b) { return a < b ? a : b; }

typedef real vec __attribute__((vector_size(VECTOR_BYTES)));
/* The same number of integers of the same size, for masks. */
#ifdef BCD_DOUBLE
typedef int64_t vec_bits __attribute__((vector_size(VECTOR_BYTES)));
#else
typedef int32_t vec_bits __attribute__((vector_size(VECTOR_BYTES)));
#endif
/* A vector in memory, where rows may start at any number. */
typedef real vec_unaligned
    __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(real)), may_alias));

/* Unrolls the loop that follows, of a constant length of at most 24, so that the array it runs over
 * can live in registers.  Not under a sanitizer, where a check for each access of an unrolled tile
 * takes the compiler minutes. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif
#ifdef SANITIZED
#define UNROLL
#elif defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 24")
#endif

#define INLINE static inline __attribute__((always_inline))

/* Keeps a vector in its register.  Otherwise gcc loads an operand again for each multiply-add that
 * uses it, and the loads, two per cycle, become the bottleneck. */
#if defined(__x86_64__)
#define IN_REGISTER(x) __asm__("" : "+x"(x))
#elif defined(__aarch64__)
#define IN_REGISTER(x) __asm__("" : "+w"(x))
#else
#define IN_REGISTER(x) (void)(x)
#endif

INLINE vec vec_load(const real *from) { return *(const vec_unaligned *)from; }
INLINE void vec_store(real *to, vec x) { *(vec_unaligned *)to = x; }

/* Prefetches the cache lines PREFETCH_BYTES after from[0 .. count).  This helps where an array is
 * read from front to back but in pieces, as by a transpose, because the processor does not
 * recognise the stream.  A prefetch past the end of the array does no harm. */
INLINE void prefetch_ahead(const real *from, ptrdiff_t count) {
    enum { PREFETCH_BYTES = 8192, LINE_BYTES = 64 };
    uintptr_t line = (uintptr_t)from + PREFETCH_BYTES;
    for (uintptr_t end = line + (size_t)count * sizeof(real); line < end; line += LINE_BYTES)
        __builtin_prefetch((const void *)line);
}

/* The shuffles of two vectors a and b that interleave their lower or upper halves: a0 b0 a1 b1
 * ... */
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

/* Returns the mask of the lanes below `count`. */
INLINE vec_bits lanes_below(int count) {
    vec_bits lane;
    UNROLL
    for (int i = 0; i < LANES; i++) lane[i] = i;
    return lane < count;
}

/* Does transpose_tile for a tile of LANES columns. */
INLINE void transpose_square(real *to, ptrdiff_t to_step, const real *from, ptrdiff_t from_step,
                             int rows) {
    vec x[LANES], y[LANES];
    UNROLL
    for (int i = 0; i < LANES; i++) {
        x[i] = vec_load(from);
        from += i + 1 < rows ? from_step : 0; /* repeats the last row where there are no more */
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
    UNROLL
    for (int j = 0; j < LANES; j++)
        vec_store(to + j * to_step, (vec)((vec_bits)x[j] & lanes_below(rows)));
}

/* to[j * to_step + i] = from[i * from_step + j] for i < rows <= LANES, rows >= 0, and j < columns
 * <= LANES. Always writes whole vectors of LANES, with 0 where i >= rows; reads row 0 even if rows
 * is 0. */
INLINE void transpose_tile(real *to, ptrdiff_t to_step, const real *from, ptrdiff_t from_step,
                           int rows, int columns) {
    if (columns == LANES && rows == LANES)
        transpose_square(to, to_step, from, from_step, LANES);
    else if (columns == LANES)
        transpose_square(to, to_step, from, from_step, rows);
    else
        for (int j = 0; j < columns; j++)
            for (int i = 0; i < LANES; i++)
                to[j * to_step + i] = i < rows ? from[i * from_step + j] : 0;
}
