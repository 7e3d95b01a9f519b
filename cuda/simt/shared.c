/* The shared memory of a block: one arena, with the launch's dynamic part first, then each SHARED
 * in the order in which the kernel first reaches it.  Between the arrays lie guards, which make
 * AddressSanitizer report an access beyond an array. */
#include <pthread.h>
#include <string.h>

#include "internal.h"
#include "sanitizer.h"

enum {
    GUARD = 256, /* before, between and behind arrays; a multiple of their alignment */
    DEFAULT_LIMIT = 48 << 10,
    ARRAYS = 64,
    KERNELS = 256,
    PAGE = 4096,
    ARENA = (SIMT_SHARED_LARGEST + (ARRAYS + 2) * 2 * GUARD + PAGE - 1) / PAGE * PAGE
};

/* Aligned to whole pages, because the race checker forgets these at each block. */
static _Alignas(PAGE) unsigned char arena[ARENA];
static struct {
    size_t used;    /* of the arena */
    size_t bytes;   /* asked for by the kernel's declarations */
    size_t dynamic; /* by the launch, or what a SHARED_LIMIT allows it */
    size_t limit;   /* of both together */
    struct {
        size_t start, bytes;
    } array[ARRAYS];
    int arrays;
} shared;
static struct {
    const void *function;
    size_t bytes;
} limits[KERNELS];
static int limit_count;
static pthread_mutex_t limits_lock = PTHREAD_MUTEX_INITIALIZER; /* any thread may set a limit */

void *simt_dynamic_shared;

/* Returns true, and overwrites *bytes, if the kernel has a SHARED_LIMIT: the last one counts, which
 * may be less than what holds without. */
static bool has_limit(size_t *bytes, const void *function) {
    bool found = false;
    pthread_mutex_lock(&limits_lock);
    for (int i = 0; i < limit_count; i++)
        if (limits[i].function == function) {
            *bytes = limits[i].bytes;
            found = true;
        }
    pthread_mutex_unlock(&limits_lock);
    return found;
}

void simt_shared_limit(const void *function, const char *kernel, size_t bytes, SimtSite site) {
    if (bytes > SIMT_SHARED_LARGEST) {
        simt_note_error("kernel %s, %s:%d: a limit of %zu bytes of shared memory; the most is %d",
                        kernel, site.file, site.line, bytes, SIMT_SHARED_LARGEST);
        return;
    }
    pthread_mutex_lock(&limits_lock);
    int i = 0;
    while (i < limit_count && limits[i].function != function) i++;
    if (i < KERNELS) {
        if (i == limit_count) limit_count++;
        limits[i].function = function;
        limits[i].bytes = bytes;
    }
    pthread_mutex_unlock(&limits_lock);
    if (i == KERNELS)
        simt_note_error("kernel %s: more than %d kernels with a limit of shared memory", kernel,
                        KERNELS);
}

/* Returns the next `bytes` of the arena, filled with NaN. */
static void *place(size_t bytes) {
    unsigned char *memory = arena + shared.used;
    SIMT_UNPOISON(memory, bytes);
    memset(memory, 0xff, bytes);
    shared.array[shared.arrays].start = shared.used;
    shared.array[shared.arrays++].bytes = bytes;
    shared.used += (bytes + 2 * GUARD - 1) / GUARD * GUARD;
    return memory;
}

bool simt_shared_open(const SimtLaunch *launch) {
    SIMT_POISON(arena, sizeof arena);
    size_t limit = DEFAULT_LIMIT;
    const bool set = has_limit(&limit, launch->function);
    if (launch->shared_bytes > limit) {
        simt_note_error("kernel %s, %s:%d: %zu bytes of dynamic shared memory, the limit is %zu%s",
                        launch->kernel, launch->site.file, launch->site.line, launch->shared_bytes,
                        limit, set ? "" : " (SHARED_LIMIT raises it)");
        return false;
    }
    shared.used = GUARD;
    shared.bytes = 0;
    shared.dynamic = set ? limit : launch->shared_bytes;
    shared.limit = set ? SIMT_SHARED_LARGEST : DEFAULT_LIMIT;
    shared.arrays = 0;
    simt_dynamic_shared = place(launch->shared_bytes);
    return true;
}

void *simt_shared_place(SimtShared *array, size_t bytes, const char *name, SimtSite site) {
    size_t total = shared.bytes + bytes;
    if (total > DEFAULT_LIMIT)
        simt_fail(site, "SHARED %s: %zu bytes of static shared memory, the limit is %d", name,
                  total, DEFAULT_LIMIT);
    if (total + shared.dynamic > shared.limit)
        simt_fail(site,
                  "SHARED %s: %zu bytes of shared memory with the dynamic part, the limit is %zu",
                  name, total + shared.dynamic, shared.limit);
    if (shared.arrays == ARRAYS) simt_fail(site, "SHARED %s: more than %d arrays", name, ARRAYS);
    shared.bytes = total;
    array->memory = place(bytes);
    array->launch = simt_launch_number;
    return array->memory;
}

void simt_shared_poison(void) {
    for (int i = 0; i < shared.arrays; i++)
        memset(arena + shared.array[i].start, 0xff, shared.array[i].bytes);
}

void simt_poison(void *memory, size_t bytes) { memset(memory, 0xff, bytes); }

bool simt_in_shared(const void *memory) {
    return (uintptr_t)memory - (uintptr_t)arena < sizeof arena;
}

unsigned simt_shared_address(const void *memory) {
    return (unsigned)((const unsigned char *)memory - arena);
}
const void *simt_shared_at(unsigned address) { return arena + address % sizeof arena; }
