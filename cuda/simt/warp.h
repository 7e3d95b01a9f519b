/* Barriers, votes and shuffles, loads with a cache hint, atomics.
 *
 * The site (file and line) is filled in by the compiler at each call. */
#ifndef SIMT_WARP_H
#define SIMT_WARP_H

#include <string.h>

#include "engine.h"

enum { warpSize = SIMT_LANES };

#define SIMT_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

/* ---- barriers ---- */

static inline void __syncthreads(SIMT_SITE) { simt_block_barrier(false, {file, line}); }
static inline int __syncthreads_count(int predicate, SIMT_SITE) {
    simt_block_barrier(predicate != 0, {file, line});
    return simt_votes.count;
}
static inline int __syncthreads_or(int predicate, SIMT_SITE) {
    simt_block_barrier(predicate != 0, {file, line});
    return simt_votes.any;
}
static inline int __syncthreads_and(int predicate, SIMT_SITE) {
    simt_block_barrier(predicate != 0, {file, line});
    return simt_votes.all;
}
static inline void __syncwarp(unsigned mask = 0xffffffffu, SIMT_SITE) {
    simt_warp_operation(mask, simt_resolve_sync, 0, 0, {file, line});
}
static inline void __threadfence() { simt_fence(); }
static inline void __threadfence_block() {}

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
static inline unsigned simt_segment(int width) { return simt_here.lane & ~((unsigned)width - 1u); }
template <typename T>
static inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, SIMT_SITE) {
    unsigned lane = simt_segment(width) + ((unsigned)source & ((unsigned)width - 1u));
    return simt_shuffle(mask, value, lane, {file, line});
}
template <typename T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_SITE) {
    unsigned lane = simt_here.lane;
    if (lane - simt_segment(width) >= delta) lane -= delta;
    return simt_shuffle(mask, value, lane, {file, line});
}
template <typename T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                                 SIMT_SITE) {
    unsigned lane = simt_here.lane;
    if (lane - simt_segment(width) + delta < (unsigned)width) lane += delta;
    return simt_shuffle(mask, value, lane, {file, line});
}
template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T value, int flip, int width = 32, SIMT_SITE) {
    unsigned lane = simt_here.lane ^ (unsigned)flip;
    if (lane >= simt_segment(width) + (unsigned)width) lane = simt_here.lane;
    return simt_shuffle(mask, value, lane, {file, line});
}

/* ---- votes and sums ---- */

static inline unsigned __ballot_sync(unsigned mask, int predicate, SIMT_SITE) {
    return (unsigned)simt_warp_operation(mask, simt_resolve_ballot, predicate != 0, 0,
                                         {file, line});
}
static inline int __any_sync(unsigned mask, int predicate, SIMT_SITE) {
    return __ballot_sync(mask, predicate, file, line) != 0;
}
static inline int __all_sync(unsigned mask, int predicate, SIMT_SITE) {
    return __ballot_sync(mask, predicate, file, line) == mask;
}
#define SIMT_REDUCE(operation, T, resolve)                                                        \
    static inline T __reduce_##operation##_sync(unsigned mask, T value, SIMT_SITE) {              \
        return (T)simt_warp_operation(mask, resolve, (uint64_t)(unsigned)value, 0, {file, line}); \
    }
SIMT_REDUCE(add, unsigned, simt_resolve_add)
SIMT_REDUCE(add, int, simt_resolve_add)
SIMT_REDUCE(and, unsigned, simt_resolve_and)
SIMT_REDUCE(or, unsigned, simt_resolve_or)
SIMT_REDUCE(xor, unsigned, simt_resolve_xor)
SIMT_REDUCE(min, unsigned, simt_resolve_min_unsigned)
SIMT_REDUCE(max, unsigned, simt_resolve_max_unsigned)
SIMT_REDUCE(min, int, simt_resolve_min_int)
SIMT_REDUCE(max, int, simt_resolve_max_int)
#undef SIMT_REDUCE

#undef SIMT_SITE

/* ---- memory ---- */

#define SIMT_LOAD(name)                      \
    template <typename T>                    \
    static inline T name(const T *address) { \
        return *address;                     \
    }
SIMT_LOAD(__ldg)
SIMT_LOAD(__ldca)
SIMT_LOAD(__ldcg)
SIMT_LOAD(__ldcs)
SIMT_LOAD(__ldcv)
SIMT_LOAD(__ldlu)
#undef SIMT_LOAD
#define SIMT_STORE(name)                           \
    template <typename T>                          \
    static inline void name(T *address, T value) { \
        *address = value;                          \
    }
SIMT_STORE(__stcg)
SIMT_STORE(__stcs)
SIMT_STORE(__stwb)
SIMT_STORE(__stwt)
#undef SIMT_STORE

/* Atomics on integers alone: sums of floats in the order of arrival are not the same bits from run
 * to run. */
#define SIMT_ATOMIC(T)                                                                             \
    static inline T atomicAdd(T *p, T v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }    \
    static inline T atomicExch(T *p, T v) { return __atomic_exchange_n(p, v, __ATOMIC_RELAXED); }  \
    static inline T atomicAnd(T *p, T v) { return __atomic_fetch_and(p, v, __ATOMIC_RELAXED); }    \
    static inline T atomicOr(T *p, T v) { return __atomic_fetch_or(p, v, __ATOMIC_RELAXED); }      \
    static inline T atomicXor(T *p, T v) { return __atomic_fetch_xor(p, v, __ATOMIC_RELAXED); }    \
    static inline T atomicCAS(T *p, T expected, T v) {                                             \
        __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);   \
        return expected;                                                                           \
    }                                                                                              \
    static inline T atomicMax(T *p, T v) {                                                         \
        T old = __atomic_load_n(p, __ATOMIC_RELAXED);                                              \
        while (old < v && atomicCAS(p, old, v) != old) old = __atomic_load_n(p, __ATOMIC_RELAXED); \
        return old;                                                                                \
    }                                                                                              \
    static inline T atomicMin(T *p, T v) {                                                         \
        T old = __atomic_load_n(p, __ATOMIC_RELAXED);                                              \
        while (v < old && atomicCAS(p, old, v) != old) old = __atomic_load_n(p, __ATOMIC_RELAXED); \
        return old;                                                                                \
    }
SIMT_ATOMIC(int)
SIMT_ATOMIC(unsigned)
SIMT_ATOMIC(unsigned long long)
#undef SIMT_ATOMIC
static inline int atomicSub(int *p, int v) { return __atomic_fetch_sub(p, v, __ATOMIC_RELAXED); }
static inline unsigned atomicSub(unsigned *p, unsigned v) {
    return __atomic_fetch_sub(p, v, __ATOMIC_RELAXED);
}
static inline unsigned atomicInc(unsigned *p, unsigned limit) {
    unsigned old = __atomic_load_n(p, __ATOMIC_RELAXED);
    for (;;) {
        unsigned seen = atomicCAS(p, old, old >= limit ? 0 : old + 1);
        if (seen == old) return old;
        old = seen;
    }
}

#endif
