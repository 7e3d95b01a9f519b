/* The first error, and what a thread waited for in vain. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

static pthread_mutex_t error_lock = PTHREAD_MUTEX_INITIALIZER; /* any thread may note an error */
static struct {
    bool set;
    char text[SIMT_ERROR_BYTES];
} error;

bool simt_take_error(char text[SIMT_ERROR_BYTES]) {
    pthread_mutex_lock(&error_lock);
    bool set = error.set;
    if (set) memcpy(text, error.text, sizeof error.text);
    error.set = false;
    pthread_mutex_unlock(&error_lock);
    return set;
}
const char *simt_error(void) {
    pthread_mutex_lock(&error_lock);
    const char *text = error.set ? error.text : NULL;
    pthread_mutex_unlock(&error_lock);
    return text;
}
void simt_clear_error(void) {
    char text[SIMT_ERROR_BYTES];
    simt_take_error(text);
}

static void note(const char *prefix, const char *format, va_list arguments) {
    char text[SIMT_ERROR_BYTES] = "";
    int length = snprintf(text, sizeof text, "%s", prefix);
    size_t used = length < 0 ? 0 : (size_t)length;
    if (used < sizeof text) vsnprintf(text + used, sizeof text - used, format, arguments);
    pthread_mutex_lock(&error_lock);
    if (!error.set) memcpy(error.text, text, sizeof text);
    error.set = true;
    pthread_mutex_unlock(&error_lock);
}

void simt_note_error(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    note("", format, arguments);
    va_end(arguments);
}

void simt_note_thread_error(SimtIndex thread, SimtSite site, const char *format, ...) {
    char prefix[512];
    snprintf(prefix, sizeof prefix,
             "kernel %s, block (%u,%u,%u), thread (%u,%u,%u), %s:%d: ", simt_running->kernel,
             blockIdx.x, blockIdx.y, blockIdx.z, thread.x, thread.y, thread.z,
             site.file ? site.file : simt_running->site.file,
             site.file ? site.line : simt_running->site.line);
    va_list arguments;
    va_start(arguments, format);
    note(prefix, format, arguments);
    va_end(arguments);
}

/* ---- a thread that waits in vain ---- */

/* Reports a lane that waits in a warp-wide operation for another that does not come. */
static void missing_lane(const SimtWarp *warp, unsigned lane) {
    SimtIndex thread = warp->index[lane];
    SimtSite site = warp->site[lane];
    unsigned mask = warp->mask[lane];
    for (unsigned i = 0; i < SIMT_LANES; i++) {
        if (!(mask >> i & 1u)) continue;
        const SimtSite at = warp->site[i];
        char why[256];
        if (!(warp->present >> i & 1u))
            snprintf(why, sizeof why, "the block does not have");
        else if (warp->done >> i & 1u)
            snprintf(why, sizeof why, "has left the kernel");
        else if (!(warp->arrived >> i & 1u))
            snprintf(why, sizeof why, "waits in __syncthreads at %s:%d", at.file, at.line);
        else if (warp->mask[i] != mask || warp->resolve[i] != warp->resolve[lane])
            snprintf(why, sizeof why, "waits in another warp-wide operation (mask %08x) at %s:%d",
                     warp->mask[i], at.file, at.line);
        else
            continue;
        simt_note_thread_error(thread, site, "waits for lane %u (mask %08x), which %s", i, mask,
                               why);
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
