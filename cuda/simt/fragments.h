/* Products of fragments, matrices from shared memory, asynchronous copies: what kernel.cuh has in
 * PTX on a GPU, done here by one lane for the whole warp (warp.c). */
#ifndef SIMT_FRAGMENTS_H
#define SIMT_FRAGMENTS_H

#include "bfloat16.h"
#include "engine.h"

#define SIMT_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

static inline void mma_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                            SIMT_SITE) {
    SimtProduct product = {d, a, b};
    simt_warp_operation(0xffffffffu, simt_resolve_mma_bf16, (uint64_t)&product, 0, {file, line});
}
static inline void mma_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                            SIMT_SITE) {
    SimtProduct product = {d, a, b};
    simt_warp_operation(0xffffffffu, simt_resolve_mma_tf32, (uint64_t)&product, 0, {file, line});
}

/* Nearest, ties away from zero (cvt.rna). */
static inline unsigned tf32_round(float x) {
    unsigned bits = float_bits(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffffffu;
    if ((bits & 0x7fffffffu) == 0x7f800000u) return bits;
    return (bits + 0x1000u) & ~0x1fffu;
}

#define SIMT_LDMATRIX(name, matrices, transposed)                                                  \
    static inline void name(unsigned(&r)[matrices], const void *row, SIMT_SITE) {                  \
        SimtMatrices work = {r, row, matrices, transposed};                                        \
        simt_warp_operation(0xffffffffu, simt_resolve_ldmatrix, (uint64_t)&work, 0, {file, line}); \
    }
SIMT_LDMATRIX(ldmatrix_x4, 4, false)
SIMT_LDMATRIX(ldmatrix_x4_trans, 4, true)
SIMT_LDMATRIX(ldmatrix_x2_trans, 2, true)
#undef SIMT_LDMATRIX

#define SIMT_COPY_ASYNC(bytes)                                                                   \
    static inline void copy_async##bytes(void *shared, const void *global, bool ok, SIMT_SITE) { \
        simt_copy_async(shared, global, bytes, ok, {file, line});                                \
    }
SIMT_COPY_ASYNC(16)
SIMT_COPY_ASYNC(8)
SIMT_COPY_ASYNC(4)
#undef SIMT_COPY_ASYNC
static inline void copy_async_commit() { simt_copy_commit(); }
template <int pending>
static inline void copy_async_wait() {
    simt_copy_wait(pending);
}

#undef SIMT_SITE

#endif
