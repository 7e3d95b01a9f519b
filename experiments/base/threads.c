#define _GNU_SOURCE /* pthread_getattr_np */
#include "threads.h"

#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "../../data/file.h"
#include "../../ref/base/error.h"
#include "alloc.h"

/* ---- quota ----------------------------------------------------------------------------------- */

/* Reads the first two words of a file, the second one only if there is one. */
static int read_words(char first[32], char second[32], const char *path) {
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    const int words = fscanf(file, "%31s %31s", first, second);
    fclose(file);
    return words;
}

/* Returns the quota of one cgroup: "max 100000" or "150000 100000" microseconds in version 2, and
 * in version 1 two files, of which the first one may hold -1. */
static double quota_of(const char *directory, bool version2) {
    char path[2 * PATH_BYTES], quota[32] = "", period[32] = "", unused[32];
    if (version2) {
        snprintf(path, sizeof path, "%s/cpu.max", directory);
        if (read_words(quota, period, path) < 2) return INFINITY;
    } else {
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", directory);
        if (read_words(quota, unused, path) < 1) return INFINITY;
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", directory);
        if (read_words(period, unused, path) < 1) return INFINITY;
    }
    const double processors = strtod(quota, NULL) / strtod(period, NULL);
    return processors > 0 ? processors : INFINITY;
}

/* Returns the smallest quota of a cgroup and those above it.  Cuts `name`. */
static double smallest_quota(const char *root, char *name, bool version2) {
    char directory[PATH_BYTES];
    double smallest = INFINITY;
    for (bool top = false; !top;) {
        char *slash = strrchr(name, '/');
        top = !slash;
        if (path_join(directory, root, top ? "" : name + 1) == 0)
            smallest = fmin(smallest, quota_of(directory, version2));
        if (slash) *slash = 0;
    }
    return smallest;
}

/* A line is "0::/a/b" in version 2, "4:cpu,cpuacct:/a/b" in version 1. */
double threads_quota(const char *self, const char *root) {
    char line[PATH_BYTES], mount[PATH_BYTES], *rest = NULL;
    double smallest = INFINITY;
    FILE *file = fopen(self, "r");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'),
             *name = controllers ? strchr(++controllers, ':') : NULL;
        if (!name) continue;
        *name++ = 0;
        const bool version2 = !*controllers;
        bool cpu = version2;
        for (char *one = strtok_r(controllers, ",", &rest); one; one = strtok_r(NULL, ",", &rest))
            cpu |= strcmp(one, "cpu") == 0;
        if (cpu && path_join(mount, root, version2 ? "" : "cpu") == 0)
            smallest = fmin(smallest, smallest_quota(mount, name, version2));
    }
    if (file) fclose(file);
    return smallest;
}

void threads_set_default(void) {
    const double quota = ceil(threads_quota("/proc/self/cgroup", "/sys/fs/cgroup"));
    if (!getenv("OMP_NUM_THREADS") && quota < omp_get_max_threads())
        omp_set_num_threads((int)quota);
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

/* Makes the main thread's stack as large as ops need it.  A stack grows when it is used; where all
 * memory is taken by then, the program would end without a word. */
static __attribute__((noinline)) void grow_stack(void) {
    enum { GROWN = 384 << 10, PAGE = 4096 };
    char room[GROWN];
    volatile char *page = room;
    for (int at = GROWN - PAGE; at >= 0; at -= PAGE) page[at] = 0;
}

int threads_check(void) {
    enum { MAIN_KIB = 512, THREAD_KIB = 256 };
    size_t smallest = SIZE_MAX;
    if (check_start()) return -1;
    if (stack_bytes() / 1024 < MAIN_KIB)
        return error_set("the stack has %zu KiB, and bcd needs %d; type: ulimit -s 8192",
                         stack_bytes() / 1024, MAIN_KIB);
    grow_stack();
#pragma omp parallel reduction(min : smallest)
    smallest = stack_bytes();
    if (smallest / 1024 >= THREAD_KIB) return 0;
    return error_set(
        "the stack of a thread has %zu KiB, and bcd needs %d; type: unset OMP_STACKSIZE",
        smallest / 1024, THREAD_KIB);
}
