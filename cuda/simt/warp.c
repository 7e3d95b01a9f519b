/* What the last lane to arrive does for the whole warp in __syncwarp, shuffles and votes. */
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

void simt_resolve_any(SimtWarp *warp, unsigned mask) {
    uint64_t any = 0;
    for (unsigned i = 0; i < SIMT_LANES; i++)
        if (mask >> i & 1u) any |= warp->value[i];
    for (unsigned i = 0; i < SIMT_LANES; i++)
        if (mask >> i & 1u) warp->result[i] = any;
}
