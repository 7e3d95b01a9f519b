#include "nccl_library.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "../../ref/error.h"

const NcclLibrary *nccl_library_open(void) {
    static NcclLibrary library;
    static bool open;
    if (open) return &library;
    void *file = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!file) {
        error_set("NCCL was not found (%s): install it, or name its directory in LD_LIBRARY_PATH",
                  dlerror());
        return NULL;
    }
    /* POSIX gives pointers to functions and objects the same bytes; ISO C has no cast between them.
     */
#define FIND(name)                                                        \
    void *name##_at = dlsym(file, #name);                                 \
    if (!name##_at) {                                                     \
        error_set("this NCCL has no " #name ": 2.14 or later is needed"); \
        return NULL;                                                      \
    }                                                                     \
    memcpy(&library.name, &name##_at, sizeof name##_at);
    NCCL_FUNCTIONS(FIND)
    open = true;
    return &library;
}
