#include "cgroup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../data/file.h"

/* A limit of a cgroup.  `read` returns that of the cgroup at `directory`, or INFINITY. */
typedef struct {
    const char *controller; /* of version 1 */
    double (*read)(const char *directory, bool version2);
} Limit;

/* Reads the first two words of a file, the second one only if there is one. */
static int read_words(char first[32], char second[32], const char *directory, const char *name) {
    char path[2 * PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    const int words = fscanf(file, "%31s %31s", first, second);
    fclose(file);
    return words;
}

/* "max 100000" or "150000 100000" microseconds in version 2, and in version 1 two files, of which
 * the first one may hold -1. */
static double read_processors(const char *directory, bool version2) {
    char quota[32] = "", period[32] = "", unused[32];
    if (version2) {
        if (read_words(quota, period, directory, "cpu.max") < 2) return INFINITY;
    } else if (read_words(quota, unused, directory, "cpu.cfs_quota_us") < 1 ||
               read_words(period, unused, directory, "cpu.cfs_period_us") < 1) {
        return INFINITY;
    }
    const double processors = strtod(quota, NULL) / strtod(period, NULL);
    return processors > 0 ? processors : INFINITY;
}

/* "max" or bytes. */
static double read_memory(const char *directory, bool version2) {
    char bytes[32] = "", unused[32];
    read_words(bytes, unused, directory, version2 ? "memory.max" : "memory.limit_in_bytes");
    const double limit = strtod(bytes, NULL);
    return limit > 0 ? limit : INFINITY;
}

static const Limit processors = {"cpu", read_processors}, memory = {"memory", read_memory};

/* Returns the smallest limit of a cgroup and those above it.  Cuts `name`. */
static double smallest(const Limit *limit, const char *root, char *name, bool version2) {
    char directory[PATH_BYTES];
    double least = INFINITY;
    for (bool top = false; !top;) {
        char *slash = strrchr(name, '/');
        top = !slash;
        if (path_join(directory, root, top ? "" : name + 1) == 0)
            least = fmin(least, limit->read(directory, version2));
        if (slash) *slash = 0;
    }
    return least;
}

/* A line is "0::/a/b" in version 2, "4:cpu,cpuacct:/a/b" in version 1. */
static double find(const Limit *limit, const char *self, const char *root) {
    char line[PATH_BYTES], mount[PATH_BYTES], *rest = NULL;
    double least = INFINITY;
    FILE *file = fopen(self, "r");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'),
             *name = controllers ? strchr(++controllers, ':') : NULL;
        if (!name) continue;
        *name++ = 0;
        const bool version2 = !*controllers;
        bool found = version2;
        for (char *one = strtok_r(controllers, ",", &rest); one; one = strtok_r(NULL, ",", &rest))
            found |= strcmp(one, limit->controller) == 0;
        if (found && path_join(mount, root, version2 ? "" : limit->controller) == 0)
            least = fmin(least, smallest(limit, mount, name, version2));
    }
    if (file) fclose(file);
    return least;
}

double cgroup_processors(const char *self, const char *root) {
    return find(&processors, self, root);
}

double cgroup_memory(const char *self, const char *root) { return find(&memory, self, root); }

static const char own_cgroups[] = "/proc/self/cgroup", mount_point[] = "/sys/fs/cgroup";

double processors_here(void) { return cgroup_processors(own_cgroups, mount_point); }

double memory_here(void) {
    const double installed = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE);
    return fmin(installed, cgroup_memory(own_cgroups, mount_point));
}
