/* Asynchronous copies of each thread, kept back until it waits for them: the destination holds NaN
 * in between, and what the source holds when the copy was begun is not what is read. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

typedef struct {
    void *to;
    const void *from; /* NULL: zeros */
    int group;
} Copy;
static struct {
    Copy *copy;
    int count, capacity;
    int group; /* that the next copy belongs to */
} queues[SIMT_THREADS];
static bool in_use;

void simt_copy_async(void *shared, const void *global, bool ok, SimtSite site) {
    if ((uintptr_t)shared % 16)
        simt_fail(site, "copy_async16 to an address that is no multiple of 16");
    if (ok && (uintptr_t)global % 16)
        simt_fail(site, "copy_async16 from an address that is no multiple of 16");
    unsigned thread = simt_thread();
    if (queues[thread].count == queues[thread].capacity) {
        int capacity = queues[thread].capacity * 2 + 16;
        Copy *grown = realloc(queues[thread].copy, (size_t)capacity * sizeof *grown);
        if (!grown) simt_fail(site, "no memory for an asynchronous copy");
        queues[thread].copy = grown;
        queues[thread].capacity = capacity;
    }
    in_use = true;
    simt_poison(shared, 16);
    if (ok) /* touched here, where a bad address is the caller's */
        (void)*(const volatile char *)global, (void)((const volatile char *)global)[15];
    queues[thread].copy[queues[thread].count++] =
        (Copy){shared, ok ? global : NULL, queues[thread].group};
}

void simt_copy_commit(void) { queues[simt_thread()].group++; }

void simt_copy_wait(int pending) {
    unsigned thread = simt_thread();
    int kept = 0;
    for (int i = 0; i < queues[thread].count; i++) {
        Copy copy = queues[thread].copy[i];
        if (copy.group >= queues[thread].group - pending)
            queues[thread].copy[kept++] = copy;
        else if (copy.from)
            memcpy(copy.to, copy.from, 16);
        else
            memset(copy.to, 0, 16);
    }
    queues[thread].count = kept;
}

void simt_copies_drop(void) {
    if (!in_use) return;
    for (int i = 0; i < SIMT_THREADS; i++) queues[i].count = queues[i].group = 0;
    in_use = false;
}
