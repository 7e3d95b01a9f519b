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

static int load(DeviceModule *module, const char *name) {
    char path[600];
    int (*open_device)(void) = NULL;
    if (library_path(path, sizeof path, name)) return -1;
    if (access(path, F_OK))
        return error_set("--device %s: this program was built without it (no %s)", name, path);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return error_set("--device %s: %s", name, dlerror());
    if (find(library, "device_open", &open_device) || find(library, "device_info", &module->info) ||
        find(library, "stage_cuda_create", &module->stage_create) ||
        find(library, "cuda_memory_plan", &module->memory_plan) || open_device()) {
        char cause[400];
        snprintf(cause, sizeof cause, "%s", error_message());
        dlclose(library);
        return error_set("--device %s: %s", name, cause);
    }
    module->name = name;
    return 0;
}

const DeviceModule *device_module_open(const char *name) {
    static DeviceModule opened;
    if (opened.name && strcmp(opened.name, name) == 0) return &opened;
    return load(&opened, name) ? NULL : &opened;
}
