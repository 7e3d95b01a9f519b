/* Barriers, votes, shuffles, loads with a cache hint, atomics: those of CUDA's that a kernel uses.
 */
#pragma once

#include <string.h>

#include "engine.h"

/* ---- barriers ---- */

static inline void __syncthreads(SIMT_SITE) { simt_block_barrier(false, {file, line}); }
static inline int __syncthreads_or(int predicate, SIMT_SITE) {
    simt_block_barrier(predicate != 0, {file, line});
    return simt_vote;
}
static inline void __syncwarp(unsigned mask = 0xffffffffu, SIMT_SITE) {
    simt_warp_operation(mask, simt_resolve_sync, 0, 0, {file, line});
}

/* ---- shuffles: values of up to 8 bytes.  A lane outside the mask gives NaN. ---- */

template <typename T>
static inline T simt_shuffle(unsigned mask, T value, unsigned source, SimtSite site) {
    static_assert(sizeof(T) <= sizeof(uint64_t), "a shuffle moves at most 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(T));
    bits = simt_warp_operation(mask, simt_resolve_shuffle, bits, source, site);
    memcpy(&value, &bits, sizeof(T));
    return value;
}
template <typename T>
static inline T __shfl_sync(unsigned mask, T value, int source, SIMT_SITE) {
    return simt_shuffle(mask, value, (unsigned)source % SIMT_LANES, {file, line});
}
template <typename T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, SIMT_SITE) {
    unsigned lane = simt_here.lane;
    return simt_shuffle(mask, value, lane >= delta ? lane - delta : lane, {file, line});
}
template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T value, int flip, SIMT_SITE) {
    unsigned lane = simt_here.lane ^ (unsigned)flip;
    return simt_shuffle(mask, value, lane, {file, line});
}

static inline int __any_sync(unsigned mask, int predicate, SIMT_SITE) {
    return simt_warp_operation(mask, simt_resolve_any, predicate != 0, 0, {file, line}) != 0;
}

/* ---- memory ---- */

template <typename T>
static inline T __ldg(const T *address) {
    return *address;
}

/* Only for integers: sums of floats in the order of arrival would differ from run to run. */
static inline int atomicAdd(int *p, int v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
