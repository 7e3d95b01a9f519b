#include "modules.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../ref/headers.h"
#include "../base/program.h"
#include "../base/text.h"

/* Loads libbcd-NAME.so.  -1 and an error "FLAG: there is no PATH; make builds it WHERE". */
static int library_open(void **library, const char *name, const char *flag, const char *where) {
    char program[512];
    if (program_path(program, sizeof program, flag)) return -1;
    *strrchr(program, '/') = 0;
    const Text path = text_of("%s/libbcd-%s.so", program, name);
    if (access(path.text, F_OK))
        return error_set("%s: there is no %s; make builds it%s", flag, path.text, where);
    *library = dlopen(path.text, RTLD_NOW | RTLD_LOCAL);
    if (!*library) return error_set("%s: %s", flag, dlerror());
    const char *headers = dlsym(*library, "bcd_headers"); /* the library's own, not the program's */
    if (headers && strcmp(headers, bcd_headers) == 0) return 0;
    return error_set("%s: %s was built with another version of this program; run make again", flag,
                     path.text);
}

/* Overwrites *function, a pointer to a function, with the address of a symbol.  -1 and an error.
 * C has no cast from void * to a function pointer; POSIX says that copying the bytes will do. */
static int library_find(void *library, const char *symbol, void *function) {
    void *address = dlsym(library, symbol);
    if (!address) return error_set("%s", dlerror());
    memcpy(function, &address, sizeof address);
    return 0;
}

/* Leaves *module unchanged unless everything is there.  A library whose device cannot be opened
 * stays loaded, as CUDA's libraries are hard to unload. */
static int load_device(DeviceModule *module, const char *name) {
    DeviceModule found = {.name = name};
    int (*open_device)(void) = NULL;
    const Text flag = text_of("--device %s", name);
    void *library;
    if (library_open(&library, name, flag.text, strcmp(name, "cuda") ? "" : " where it finds nvcc"))
        return -1;
    if (library_find(library, "device_open", &open_device) ||
        library_find(library, "device_info", &found.info) ||
        library_find(library, "stage_cuda_create", &found.stage_create) ||
        library_find(library, "cuda_memory_plan", &found.memory_plan) ||
        library_find(library, "message_free", &found.message_free) || open_device())
        return error_set("%s: %s", flag.text, error_message());
    /* Optional: a symbol that is not found leaves NULL. */
    (void)library_find(library, "transport_nccl_create", &found.transport_nccl_create);
    (void)library_find(library, "transport_nccl_bytes", &found.transport_nccl_bytes);
    *module = found;
    return 0;
}

const DeviceModule *device_module_open(const char *name) {
    static DeviceModule opened[2];
    DeviceModule *module = &opened[strcmp(name, "cuda") == 0];
    return module->name || load_device(module, name) == 0 ? module : NULL;
}

Transport *mpi_module_open(double timeout_s) {
    static Transport *(*create)(double timeout_s);
    void *library;
    if (!create && (library_open(&library, "mpi", "--pipeline mpi", " where it finds mpicc") ||
                    library_find(library, "transport_mpi_create", &create)))
        return NULL;
    return create(timeout_s);
}
