/* Products of four warps, of kernel.cuh.  A warp computes its 16 of the 64 rows by itself, and only
 * in wgmma_end: before that its accumulators hold what they held, and shared memory that is written
 * too early shows as another result. */
#ifndef SIMT_WGMMA_H
#define SIMT_WGMMA_H

#include "engine.h"

#define SIMT_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

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
template <int N>
static inline void wgmma_pin(unsigned (&)[N][4]) {} /* only compilers for a GPU need it */
template <int N>
static inline void wgmma_begin(float (&)[N][4], SIMT_SITE) {
    simt_warp_operation(0xffffffffu, simt_resolve_wgmma_begin, 0, 0, {file, line});
}
template <int N>
static inline void wgmma_end(float (&)[N][4], SIMT_SITE) {
    simt_warp_operation(0xffffffffu, simt_resolve_wgmma_end, 0, 0, {file, line});
}

#undef SIMT_SITE

#endif
