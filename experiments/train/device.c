#include "device.h"

#include <stdio.h>
#include <string.h>

#include "../../ref/error.h"
#include "library.h"

/* Leaves *module alone unless all is there.  A library whose device cannot be opened stays loaded:
 * CUDA's do not like to go. */
static int load(DeviceModule *module, const char *name) {
    char flag[64];
    DeviceModule found = {.name = name};
    int (*open_device)(void) = NULL;
    snprintf(flag, sizeof flag, "--device %s", name);
    void *library = library_open(name, flag, strcmp(name, "cuda") ? "" : " where it finds nvcc");
    if (!library) return -1;
    if (library_find(library, "device_open", &open_device) ||
        library_find(library, "device_info", &found.info) ||
        library_find(library, "stage_cuda_create", &found.stage_create) ||
        library_find(library, "cuda_memory_plan", &found.memory_plan) || open_device())
        return error_set("%s: %s", flag, error_message());
    /* what only some builds have: where they fail, they leave NULL */
    (void)library_find(library, "message_free", &found.message_free);
    (void)library_find(library, "transport_nccl_create", &found.transport_nccl_create);
    (void)library_find(library, "transport_nccl_bytes", &found.transport_nccl_bytes);
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
