/* What kernel.cuh has in PTX on a GPU: products of fragments, matrices from shared memory,
 * asynchronous copies (copies.c) and the products of four warps (wgmma.c).  The last lane to arrive
 * does the work of its whole warp (warp.c). */
#pragma once

#include "engine.h"
#include "numbers.h"

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

static inline unsigned tf32_round(float x) { return tf32_of(x); }

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

/* ---- products of four warps ----
 *
 * A warp computes its 16 of the 64 rows by itself, and only in wgmma_end: before that its
 * accumulators hold what they held, and shared memory that is written too early shows as another
 * result. */

static inline unsigned shared_address(const void *p) { return simt_shared_address(p); }
static inline void async_proxy_fence() { simt_async_fence(); }

template <int N>
static inline void wgmma_rows(float (&d)[N][4], uint64_t a, uint64_t b, SIMT_SITE) {
    SimtGroupProduct product = {d[0], nullptr, a, b, N};
    simt_warp_operation(0xffffffffu, simt_resolve_wgmma, (uint64_t)&product, 0, {file, line});
}
template <int N>
static inline void wgmma_sums(float (&d)[N][4], const unsigned (&a)[4], uint64_t b, SIMT_SITE) {
    SimtGroupProduct product = {d[0], a, 0, b, N};
    simt_warp_operation(0xffffffffu, simt_resolve_wgmma, (uint64_t)&product, 0, {file, line});
}
template <typename T, int N>
static inline void wgmma_pin(T (&)[N][4]) {} /* only compilers for a GPU need it */
template <int N>
static inline void wgmma_begin(float (&)[N][4], SIMT_SITE) {
    simt_warp_operation(0xffffffffu, simt_resolve_wgmma_begin, 0, 0, {file, line});
}
template <int N>
static inline void wgmma_end(float (&)[N][4], SIMT_SITE) {
    simt_warp_operation(0xffffffffu, simt_resolve_wgmma_end, 0, 0, {file, line});
}
