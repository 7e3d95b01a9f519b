#include "device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../ref/error.h"

/* libbcd-NAME.so in the program's directory. */
static int library_path(char *path, size_t size, const char *name) {
    char program[512];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0) return error_set("--device %s: cannot tell where the program lies", name);
    program[length] = 0;
    *strrchr(program, '/') = 0;
    snprintf(path, size, "%s/libbcd-%s.so", program, name);
    return 0;
}

/* Functions cannot be cast from object pointers in C; POSIX says that their bytes are the same. */
static int find(void *library, const char *symbol, void *function) {
    void *address = dlsym(library, symbol);
    if (!address) return error_set("%s", dlerror());
    memcpy(function, &address, sizeof address);
    return 0;
}

/* Leaves *module alone unless all is there.  A library whose device cannot be opened stays loaded:
 * CUDA's do not like to go. */
static int load(DeviceModule *module, const char *name) {
    char path[600], cause[400];
    DeviceModule found = {.name = name};
    int (*open_device)(void) = NULL;
    if (library_path(path, sizeof path, name)) return -1;
    if (access(path, F_OK))
        return error_set("--device %s: there is no %s; make builds it%s", name, path,
                         strcmp(name, "cuda") ? "" : " where it finds nvcc");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return error_set("--device %s: %s", name, dlerror());
    if (find(library, "device_open", &open_device) || find(library, "device_info", &found.info) ||
        find(library, "stage_cuda_create", &found.stage_create) ||
        find(library, "cuda_memory_plan", &found.memory_plan) || open_device()) {
        snprintf(cause, sizeof cause, "%s", error_message());
        return error_set("--device %s: %s", name, cause);
    }
    *module = found;
    return 0;
}

const DeviceModule *device_module_open(const char *name) {
    static DeviceModule opened[2];
    int at = 0;
    while (at < 2 && opened[at].name && strcmp(opened[at].name, name)) at++;
    if (at == 2) {
        error_set("--device %s: two others are open", name);
        return NULL;
    }
    return opened[at].name || load(&opened[at], name) == 0 ? &opened[at] : NULL;
}
