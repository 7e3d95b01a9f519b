#include "internal.h"

static const char *told(const char *file) { return file ? file : "?"; }

/* Reports a lane that waits in a warp-wide operation for another that does not come. */
static void missing_lane(const SimtWarp *warp, unsigned lane) {
    SimtIndex thread = warp->index[lane];
    SimtSite site = warp->site[lane];
    unsigned mask = warp->mask[lane];
    for (unsigned i = 0; i < SIMT_LANES; i++) {
        if (!(mask >> i & 1u)) continue;
        const SimtSite at = warp->site[i];
        if (!(warp->present >> i & 1u))
            simt_note_thread_error(thread, site,
                                   "waits for lane %u (mask %08x), which the block does not have",
                                   i, mask);
        else if (warp->done >> i & 1u)
            simt_note_thread_error(
                thread, site, "waits for lane %u (mask %08x), which has left the kernel", i, mask);
        else if (!(warp->arrived >> i & 1u))
            simt_note_thread_error(
                thread, site,
                "waits for lane %u (mask %08x), which waits in __syncthreads at %s:%d", i, mask,
                told(at.file), at.line);
        else if (warp->mask[i] != mask || warp->resolve[i] != warp->resolve[lane])
            simt_note_thread_error(
                thread, site,
                "waits for lane %u (mask %08x), which waits in another warp-wide "
                "operation (mask %08x) at %s:%d",
                i, mask, warp->mask[i], told(at.file), at.line);
        else
            continue;
        return;
    }
}

void simt_diagnose(const SimtWarp *warps, unsigned count) {
    const SimtIndex *left = NULL, *waiting = NULL;
    SimtSite barrier = {0};
    for (unsigned w = 0; w < count; w++)
        for (unsigned lane = 0; lane < SIMT_LANES; lane++) {
            unsigned bit = 1u << lane;
            if (warps[w].arrived & bit) {
                missing_lane(&warps[w], lane);
                return;
            }
            if (warps[w].done & bit) {
                if (!left) left = &warps[w].index[lane];
            } else if (warps[w].present & bit && !waiting) {
                waiting = &warps[w].index[lane];
                barrier = warps[w].site[lane];
            }
        }
    if (left && waiting)
        simt_note_thread_error(*left, barrier,
                               "left the kernel before the __syncthreads where thread (%u,%u,%u) "
                               "waits",
                               waiting->x, waiting->y, waiting->z);
    else
        simt_note_error("the scheduler lost its threads");
}
