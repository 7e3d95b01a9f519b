/* What the last lane to arrive does for the whole warp in __syncwarp, shuffles, votes and sums. */
#include "internal.h"

void simt_resolve_sync(SimtWarp *warp, unsigned mask) {
    if (simt_race) simt_race->sync_warp(warp, mask);
}

void simt_resolve_shuffle(SimtWarp *warp, unsigned mask) {
    for (unsigned i = 0; i < SIMT_LANES; i++) {
        if (!(mask >> i & 1u)) continue;
        unsigned source = warp->source[i];
        warp->result[i] = mask >> source & 1u ? warp->value[source] : ~(uint64_t)0;
    }
}

void simt_resolve_ballot(SimtWarp *warp, unsigned mask) {
    uint64_t votes = 0;
    for (unsigned i = 0; i < SIMT_LANES; i++)
        if (mask >> i & 1u && warp->value[i]) votes |= 1u << i;
    for (unsigned i = 0; i < SIMT_LANES; i++)
        if (mask >> i & 1u) warp->result[i] = votes;
}

/* Defines a reduction of 32-bit values: `a` begins as `start` and is combined with each lane's `b`
 * in turn; every lane of the mask gets the result. */
#define FOLD(name, T, start, combined)                                   \
    void simt_resolve_##name(SimtWarp *warp, unsigned mask) {            \
        T a = start;                                                     \
        for (unsigned i = 0; i < SIMT_LANES; i++) {                      \
            if (!(mask >> i & 1u)) continue;                             \
            T b = (T)warp->value[i];                                     \
            a = combined;                                                \
        }                                                                \
        for (unsigned i = 0; i < SIMT_LANES; i++)                        \
            if (mask >> i & 1u) warp->result[i] = (uint64_t)(uint32_t)a; \
    }
FOLD(add, uint32_t, 0, a + b)
FOLD(and, uint32_t, ~0u, a &b)
FOLD(or, uint32_t, 0, a | b)
FOLD(xor, uint32_t, 0, a ^ b)
FOLD(min_unsigned, uint32_t, UINT32_MAX, b < a ? b : a)
FOLD(max_unsigned, uint32_t, 0, b > a ? b : a)
FOLD(min_int, int32_t, INT32_MAX, b < a ? b : a)
FOLD(max_int, int32_t, INT32_MIN, b > a ? b : a)
