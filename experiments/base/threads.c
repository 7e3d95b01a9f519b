#define _GNU_SOURCE /* pthread_getattr_np */
#include "threads.h"

#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../../ref/base/error.h"
#include "alloc.h"
#include "cgroup.h"

int threads_of_quota(double processors, int threads) {
    return processors < threads ? (int)ceil(processors) : threads;
}

void threads_set_default(void) {
    if (!getenv("OMP_NUM_THREADS"))
        omp_set_num_threads(threads_of_quota(processors_here(), omp_get_max_threads()));
}

void threads_share(int processes) {
    const int here = threads_of_quota(processors_here(), (int)sysconf(_SC_NPROCESSORS_ONLN));
    const int each = here / processes;
    if (getenv("OMP_NUM_THREADS") || each >= omp_get_max_threads()) return;
    omp_set_num_threads(each > 1 ? each : 1);
}

/* ---- start and stacks ------------------------------------------------------------------------ */

static void *wait_behind(void *gate) {
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

static int check_start(void) {
    const int wanted = omp_get_max_threads() - 1;
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t *threads = xmalloc((size_t)wanted * sizeof *threads);
    int started = 0, cause = 0;
    pthread_mutex_lock(&gate);
    while (started < wanted &&
           !(cause = pthread_create(&threads[started], NULL, wait_behind, &gate)))
        started++;
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    free(threads);
    if (!cause) return 0;
    return error_set("cannot start %d threads: %s; --threads or OMP_NUM_THREADS can say fewer",
                     wanted + 1, strerror(cause));
}

static size_t stack_bytes(void) {
    pthread_attr_t attributes;
    size_t bytes = SIZE_MAX;
    if (pthread_getattr_np(pthread_self(), &attributes)) return bytes;
    pthread_attr_getstacksize(&attributes, &bytes);
    pthread_attr_destroy(&attributes);
    return bytes;
}

/* What ops need of the main thread's stack. */
enum { GROWN = 384 << 10 };

/* Asks whether a stack can grow: a mapping, unlike a stack, fails with an error. */
static int check_room(void) {
    enum { OF_CALLS = 64 << 10 };
    void *room =
        mmap(NULL, GROWN + OF_CALLS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) return error_set("no memory is left for the stack");
    munmap(room, GROWN + OF_CALLS);
    return 0;
}

/* Makes the main thread's stack as large as ops need it.  A stack grows when it is used; where all
 * memory is taken by then, the program would end without a word. */
static __attribute__((noinline)) void grow_stack(void) {
    enum { PAGE = 4096 };
    char room[GROWN];
    volatile char *page = room;
    for (int at = GROWN - PAGE; at >= 0; at -= PAGE) page[at] = 0;
}

int threads_check_main(void) {
    enum { MAIN_KIB = 512 };
    if (stack_bytes() / 1024 >= MAIN_KIB) return 0;
    return error_set("the stack has %zu KiB, and bcd needs %d; type: ulimit -s 8192",
                     stack_bytes() / 1024, MAIN_KIB);
}

int threads_check(void) {
    enum { THREAD_KIB = 256 };
    size_t smallest = SIZE_MAX;
    if (check_start() || check_room()) return -1;
    grow_stack();
#pragma omp parallel reduction(min : smallest)
    smallest = stack_bytes();
    if (smallest / 1024 >= THREAD_KIB) return 0;
    return error_set(
        "the stack of a thread has %zu KiB, and bcd needs %d; type: unset OMP_STACKSIZE",
        smallest / 1024, THREAD_KIB);
}
