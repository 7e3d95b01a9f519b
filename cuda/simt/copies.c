/* Asynchronous copies of each thread, done only when it waits for them.  Until then the destination
 * holds NaN, and a change of the source changes what is copied, so that a missing wait shows. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

typedef struct {
    void *to;
    const void *from; /* NULL: zeros */
    size_t bytes;
    int group;
    SimtSite site;
} AsyncCopy;
static struct {
    AsyncCopy *copy;
    int count, capacity;
    int group; /* of the next copy */
    bool unfenced;
} queues[SIMT_THREADS];
static bool in_use;
static int unfenced; /* number of threads that have unfenced copies */

static void note_access(const AsyncCopy *copy) {
    if (!simt_race) return;
    if (copy->from) simt_race->access(copy->from, copy->bytes, false, simt_thread(), copy->site);
    simt_race->access(copy->to, copy->bytes, true, simt_thread(), copy->site);
}

void simt_copy_async(void *shared, const void *global, size_t bytes, bool ok, SimtSite site) {
    if ((uintptr_t)shared % bytes || (ok && (uintptr_t)global % bytes))
        simt_fail(site, "copy_async%zu %s an address that is no multiple of %zu", bytes,
                  (uintptr_t)shared % bytes ? "to" : "from", bytes);
    unsigned thread = simt_thread();
    if (queues[thread].count == queues[thread].capacity) {
        int capacity = queues[thread].capacity * 2 + 16;
        AsyncCopy *grown = realloc(queues[thread].copy, (size_t)capacity * sizeof *grown);
        if (!grown) simt_fail(site, "no memory for an asynchronous copy");
        queues[thread].copy = grown;
        queues[thread].capacity = capacity;
    }
    in_use = true;
    note_access(&(AsyncCopy){shared, NULL, bytes, 0, site}); /* the copy may write from now on */
    simt_poison(shared, bytes);
    /* Read here, so that a bad address faults in the caller. */
    const volatile char *touched = global;
    if (ok) (void)touched[0], (void)touched[bytes - 1];
    queues[thread].copy[queues[thread].count++] =
        (AsyncCopy){shared, ok ? global : NULL, bytes, queues[thread].group, site};
}

void simt_copy_commit(void) { queues[simt_thread()].group++; }

void simt_copy_wait(int pending) {
    unsigned thread = simt_thread();
    int kept = 0;
    for (int i = 0; i < queues[thread].count; i++) {
        AsyncCopy copy = queues[thread].copy[i];
        if (copy.group >= queues[thread].group - pending) {
            queues[thread].copy[kept++] = copy;
            continue;
        }
        note_access(&copy);
        if (copy.from)
            memcpy(copy.to, copy.from, copy.bytes);
        else
            memset(copy.to, 0, copy.bytes);
    }
    if (kept < queues[thread].count && !queues[thread].unfenced) {
        queues[thread].unfenced = true;
        unfenced++;
    }
    queues[thread].count = kept;
}

void simt_async_fence(void) {
    unfenced -= queues[simt_thread()].unfenced;
    queues[simt_thread()].unfenced = false;
}

bool simt_unfenced_copies(void) { return unfenced > 0; }

void simt_copies_drop(void) {
    if (!in_use) return;
    for (int i = 0; i < SIMT_THREADS; i++) {
        queues[i].count = queues[i].group = 0;
        queues[i].unfenced = false;
    }
    in_use = false;
    unfenced = 0;
}
